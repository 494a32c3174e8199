// Errors of the file system in words, with what to do; knows no file.

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist: check the path",
  ENOTDIR: "does not exist: a part of the path is not a directory",
  EACCES: "permission denied: check the owner and mode, or run the command as another user",
  EPERM: "permission denied: check the owner and mode, or run the command as another user",
  EISDIR: "is a directory: name a file in it",
  ELOOP: "is a link that leads to itself: name the file",
  ENAMETOOLONG: "is too long for the path of a file",
  EROFS: "the file system is read-only: choose another place",
  ENOSPC: "the disk is full: free space, or choose another place",
  EDQUOT: "the disk quota of this user is exhausted: free space, or choose another place",
};

/** Behind the path of the file that could not be read. */
export function fileProblem(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return WORDS[code] ?? message;
}

/** The whole sentence for an error of the file system that nothing else has explained; null: another error. */
export function explainedFileError(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = "", path } = error as NodeJS.ErrnoException;
  const words = WORDS[code];
  return words === undefined || path === undefined ? null : `${path}: ${words}`;
}

/** Behind the path of the file that could not be written. */
export function writeProblem(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "its directory does not exist: create it" : fileProblem(error);
}
