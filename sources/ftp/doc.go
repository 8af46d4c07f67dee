// Package ftp is a source whose resources are directories on an FTP, FTPS or SFTP server and whose messages are the files in
// them.
//
// A file is delivered when it has not changed for a while (or by another sign, see package pickup), in the order of the names
// or the times. Its body streams through Message.Open, in constant memory. A read ends with ErrChanged when the file is not
// the one that was delivered, or changes or vanishes during the read, and never ends early without an error; when its connection breaks,
// it goes on where it was, over another one, if the file is still the same. A file is deleted or moved only if it still is
// the one that was worked.
//
// # What a message is
//
// Key is the name of the file, Resource the directory, Size and Published are the file's size and modification time. A
// listing's time without seconds or zone (LIST) is never used. A file is known by its size, its time in seconds and, where
// the server gives one, its unique identification; see Config.IgnoreUnique.
//
// # Connections
//
// A Source has at most Config.Connections, those that are being made included. Each file that is being read takes one, until its end
// or Close, so Connections-1 bounds them over all handlers and resources; one is left for listings and settlements, which thus never
// wait for a handler. The Connections of all nodes together must be within what the server allows.
//
// An Open beyond that waits for its turn, for as long as files are read. A handler that opens several files at once, of a set or of a
// batch, holds some while it waits for others, and such handlers can wait for each other. So when for Config.Timeout no byte was read
// over any of them and none was closed, one Open that waited as long fails, with an error that says so; its handler gives back what it
// has, and the others go on. Raise Connections to one more than handlers run at once, times the files that each has open, or let
// handlers close one before they open the next. A file that is closed before its end costs its connection.
//
// Each read and write on each connection has Config.Timeout, so that no call waits for ever on a server that is frozen or cut
// off. After any error that is not a reply of the server its connection is discarded. What may be done twice is done once more
// over another one. A connection that was idle is asked for a sign of life before it is used, and closed after a minute.
//
// # FTP
//
// Data connections are passive, and transfers binary; active mode and ASCII are not spoken. The server must have MLST, or
// MDTM and SIZE. With MLST and MLSD a listing tells what a file is; without them, as on vsftpd, LIST gives the names and each
// file is asked for by two commands. EPSV is tried first; see Config.TrustPassiveAddress for PASV.
//
// With FTPS the data connection goes on with the TLS session of its control connection, as most servers demand. A server that
// does not speak TLS is an error; nothing is ever sent without.
//
// A directory is entered before it is listed, because some servers list one that is missing, or that the user may not read,
// as an empty one. Where a server says "no" without a reason (vsftpd), it is asked further: whether a file is not there or
// may not be deleted makes a difference.
//
// # SFTP
//
// The server must show a host key that is known, by a file of known hosts or by its fingerprint; see SSH. There is no way to leave
// that out. One that is another than before is an error that names both. Login is by a key, by the keys of an agent, or by a
// password, which answers keyboard-interactive too. Secrets are read anew for each login and are in no error.
//
// Directories come by the pages that the server sends (OpenSSH: 100 names), so that a big one needs no more memory than a small
// one. A file is read by up to 64 requests of 32 KiB that are under way at once, 2 MiB for each file that is open. The protocol has no
// deadlines: a connection whose server does not answer within Config.Timeout, or whose context ends, is closed.
//
// A move is the rename that refuses a target. OpenSSH does so for sure; other servers are asked first whether the name is free.
// Links are no messages and are not followed: what was opened is compared with what the name had. The end of a file that became
// shorter while it was read comes without an error over SFTP; it is ErrChanged here, as a file that grew or was replaced is.
//
// # Limits
//
//   - Neither protocol tells of changes: directories are polled.
//   - FTP has no rename that refuses to overwrite. A move looks whether the name is free and renames; who writes a file of
//     that name into the folder in the moment between is overwritten. The names of nodes that work the same resource do not meet,
//     since only the holder of a claim moves; two resources must not move into one folder (an absolute folder has a
//     directory for each resource).
//   - Neither protocol has a deletion that looks: a file is looked at, and then its deletion is sent, or its rename. What a writer puts
//     under the name in between is deleted unread; what was renamed is looked at again and put back. That is one round trip while the
//     server answers. When it does not, or the connection breaks after the command was sent, nobody can tell whether it will be
//     carried out yet: what has not reached the server is withdrawn, but one that was frozen may do what it has when it goes on, long
//     after its connection is closed here and also after the file was settled over another one. Until then a new file under the same name is deleted unread, or, with pickup.MoveTo, lies
//     in the folder unworked and unreported. Senders should not use a name again; where they do, MoveTo loses nothing for good.
//   - A move is a rename; to another file system of the server most servers refuse it, with an error.
//   - A name with a line end, a zero byte or the byte 255 cannot be sent over FTP. What a listing has of such names is reported
//     to the Logger and is no message.
//   - Symbolic links are no messages where the server tells them apart, as the listings of vsftpd, proftpd and pure-ftpd do.
//   - pure-ftpd lists 10,000 files unless it is started with a higher -L; those beyond come when the first are gone.
//   - What only the server knows, such as two names that are one directory, is not noticed: list it once.
//   - Attempts are counted in memory, so Message.Attempt is a minimum after a move of the resource.
//
// # What an operator sets up
//
// A user who may list, read, and delete or rename in the directories, and write in the folders to which files are moved, which
// are made when they are missing. Enough connections per user and address. Clocks need not agree unless MinAge is used. Two
// groups that work one directory are both given its files: use one group, or Policy.ClaimByRename.
package ftp
