// Saves a file from the API as a download; knows no content.

/** The browser asks or saves, by its settings. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The download has started; the browser keeps the data until it is done.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
