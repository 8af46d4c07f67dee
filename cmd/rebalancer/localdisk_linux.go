package main

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// networkDisk says which kind of file system a directory is on when other machines can see it too; "" when it is local.
func networkDisk(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Sprintf("the file system of %s cannot be told: %v", dir, err)
	}
	name, shared := map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB",
		unix.V9FS_MAGIC: "9P", unix.FUSE_SUPER_MAGIC: "FUSE", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS",
		unix.CODA_SUPER_MAGIC: "Coda", unix.OCFS2_SUPER_MAGIC: "OCFS2", 0x0bd00bd0: "Lustre", 0x01161970: "GFS2", 0x47504653: "GPFS",
	}[uint32(st.Type)]
	if !shared {
		return ""
	}
	return fmt.Sprintf("%s is on %s, which other machines may share", dir, name)
}

// mayWrite tells whether this user may make and remove names in a directory.
func mayWrite(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}
