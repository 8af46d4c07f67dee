# Sources over real servers: their drivers, under the race detector where there is a compiler, and the order of each key under faults.
# Their tests mostly wait: more of them at a time than there are cores.
source_drivers() {
	local race=
	need_cc && race=-race CGO_ENABLED=1
	export CGO_ENABLED
	gotest "sources: RabbitMQ $(versions rabbitmq-server rabbitmq-server)" $race -timeout 1h -parallel 8 ./sources/rabbitmq
	gotest "sources: SQS, played by fauxqs and a fake" $race -timeout 1h -parallel 8 ./sources/sqs/...
	gotest "sources: S3, played by versitygw and a small store" $race -timeout 1h -parallel 8 ./sources/s3 ${SOAK:+-soak}
	[ -n "$SOAK" ] || race= # it doubles the time of the many logins
	gotest "sources: FTP, FTPS and SFTP, over vsftpd, proftpd, pure-ftpd and OpenSSH" $race -timeout 1h -parallel 8 ./sources/ftp
	unset CGO_ENABLED
	gotest "sources: the program of the README, over RabbitMQ and Redis" -timeout 10m ./examples/queues
	gotest "sources: a service on RabbitMQ and PostgreSQL" -timeout 10m ./examples/orders
}

if need_servers; then
	source_drivers
	gotest "sources: the command line over each, and the examples" -timeout 10m -parallel 6 ./integration/cli ./examples/sqsfifo ./examples/s3prefixes ./examples/sftppoller -skip "^TestStore"
	gotest "sources: files under faults, directories, FTP, SFTP and S3 over Redis" -timeout 12h -parallel 6 ./integration/files -seed="$SEED" ${SOAK:+-soak}
	gotest "sources: order under faults, RabbitMQ over Redis and PostgreSQL" -timeout 12h -parallel 5 ./integration/order -seed="$SEED" ${SOAK:+-soak}
else
	missing "sources: RabbitMQ, SQS, S3, FTP" "scripts/servers.sh could not install the servers"
fi
