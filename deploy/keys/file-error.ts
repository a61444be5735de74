/** Where a file is to be written, what is wrong is often its folder. */
const OF_READING: Readonly<Record<string, string>> = {
  EACCES: "This user may not read it: run the command as its owner, or as root.",
  ENOENT: "It is not there: correct its path.",
};
const OF_WRITING: Readonly<Record<string, string>> = {
  EACCES: "This user may not write to its folder: run the command as the owner, or as root.",
  ENOENT: "Its folder is not there: make it, or correct the path.",
};
const OF_BOTH: Readonly<Record<string, string>> = {
  EISDIR: "It is a folder: name a file.",
  ENOTDIR: "A part of its path is no folder: correct the path.",
  ENOSPC: "The disk is full: make room, then run the command again.",
  EDQUOT: "The quota of this user is used up: make room, then run the command again.",
  EROFS: "Its file system is read-only: name a file elsewhere.",
};

/** Why a file cannot be used, and what to do, in one line. @param use what was to be done with it. */
export function fileError(
  file: string,
  use: "read" | "changed" | "written",
  { code = "" }: NodeJS.ErrnoException,
): Error {
  const advice = OF_BOTH[code] ?? (use === "read" ? OF_READING : OF_WRITING)[code === "EPERM" ? "EACCES" : code];
  return new Error([`${file} cannot be ${use} (${code}).`, ...(advice === undefined ? [] : [advice])].join(" "));
}
