#!/bin/sh
# Prints the SQL that makes the database and its three accounts; harmless to run again, and it sets the passwords anew.
# Feed it to the mysql client as root. Passwords come from the environment, so that no process list shows them:
# MYSQL_APP_PASSWORD, MYSQL_ADMIN_PASSWORD, MYSQL_DEBEZIUM_PASSWORD. With MYSQL_TEST_SCHEMAS set, also what tests need.
set -eu

# A MySQL string literal of the text in $1: backslashes and quotes doubled.
literal() {
    printf "'%s'" "$(printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e "s/'/''/g")"
}

# account NAME PASSWORD
account() {
    printf "CREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY %s;\n" "$1" "$(literal "$2")"
    printf "ALTER USER '%s'@'%%' IDENTIFIED BY %s;\n" "$1" "$(literal "$2")"
}

# Evaluated first: a missing name ends the script before it prints anything.
: "${MYSQL_APP_PASSWORD:?is not set}" "${MYSQL_ADMIN_PASSWORD:?is not set}" "${MYSQL_DEBEZIUM_PASSWORD:?is not set}"

echo "CREATE DATABASE IF NOT EXISTS likewise CHARACTER SET utf8mb4;"

# The roles: rows only. No DDL, so no TRUNCATE, which would empty a table without a change for each row.
account likewise "$MYSQL_APP_PASSWORD"
echo "GRANT SELECT, INSERT, UPDATE, DELETE ON likewise.* TO 'likewise'@'%';"
# And the names of its own transactions, by which the answer to a like knows whether its count has it already.
echo "GRANT SELECT ON performance_schema.events_transactions_history TO 'likewise'@'%';"

# Migrations and an operator's checks: everything in this database; elsewhere only to look at the server's state
# (PROCESS: is the connector's binlog thread there; REPLICATION CLIENT: where the binlog stands).
account likewise_admin "$MYSQL_ADMIN_PASSWORD"
echo "GRANT ALL PRIVILEGES ON likewise.* TO 'likewise_admin'@'%';"
echo "GRANT PROCESS, REPLICATION CLIENT ON *.* TO 'likewise_admin'@'%';"
echo "GRANT SELECT ON performance_schema.* TO 'likewise_admin'@'%';"

# Tests of the development stack make databases of their own, and drop them; they cut the connector's link.
if [ -n "${MYSQL_TEST_SCHEMAS:-}" ]; then
    echo "GRANT ALL PRIVILEGES ON \`likewise\\_test\\_%\`.* TO 'likewise_admin'@'%';"
    echo "GRANT SELECT, INSERT, UPDATE, DELETE ON \`likewise\\_test\\_%\`.* TO 'likewise'@'%';"
    echo "GRANT CONNECTION_ADMIN ON *.* TO 'likewise_admin'@'%';"
fi

# The connector: what Debezium's MySQL connector asks for.
account debezium "$MYSQL_DEBEZIUM_PASSWORD"
echo "GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES ON *.* TO 'debezium'@'%';"
