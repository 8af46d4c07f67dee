# vsftpd, proftpd and pure-ftpd exclude each other as packages: they are unpacked into $CACHE/ftp, with the libraries that nothing else here needs.
FTP="vsftpd proftpd-core proftpd-mod-crypto pure-ftpd libhashkit2 libhiredis0.14 libmemcached11 libmemcachedutil2 libpcre2-posix3 libsodium23 libidn2-0 libunistring2 libwrap0 libnsl2 libtirpc3 libsasl2-2"

ftp() {
	local dir=$CACHE/ftp deb
	[ "$(cat "$dir/.complete" 2>/dev/null)" = "$FTP" ] && return
	echo "unpacking vsftpd, proftpd, pure-ftpd"
	rm -rf "$dir"
	mkdir -p "$dir/debs"
	quietly apt-get -qq update
	# shellcheck disable=SC2086 # a list
	quietly sh -c 'cd "$1" && shift && exec apt-get -qq -o APT::Sandbox::User=root download "$@"' sh "$dir/debs" $FTP
	for deb in "$dir"/debs/*.deb; do
		quietly dpkg -x "$deb" "$dir"
	done
	rm -rf "$dir/debs"
	echo "$FTP" >"$dir/.complete"
}
