"""The development stack of Likewise on one machine: fetch, start, watch and stop its servers and roles."""
