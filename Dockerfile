# The one binary, for every role and operator command. The tag is the channel of rust-toolchain.toml.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY . .
# The cache mounts are gone after the step, so the binary is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p likewise \
    && cp target/release/likewise /usr/local/bin/likewise

FROM debian:bookworm-slim
# librdkafka links these two dynamically.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libssl3 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/likewise /usr/local/bin/likewise
USER 10001:10001
ENTRYPOINT ["likewise"]
