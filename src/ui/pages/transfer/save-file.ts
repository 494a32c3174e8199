// Hands a file that was read from the API to the person, as a download; knows no document.

/** The browser asks or saves, as it is set up to. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The download has begun by then; what it reads stays until it is done.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
