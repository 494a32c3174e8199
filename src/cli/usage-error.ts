// Errors of a command line; knows no command.

/** Ends the program with exit code 2 after it prints the message and a hint to the help. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/** `; did you mean "serve"?` when one of the words is close to what was typed, else nothing. */
export function suggestion(typed: string, words: readonly string[]): string {
  let best = "";
  let bestDistance = Math.max(2, Math.floor(typed.length / 3)) + 1;
  for (const word of words) {
    const isStart = typed.length > 1 && word.startsWith(typed);
    const distance = isStart ? 0 : editDistance(typed, word);
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best === "" ? "" : `; did you mean "${best}"?`;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const above = (previous[j] ?? 0) + 1;
      const left = (row[j - 1] ?? 0) + 1;
      const diagonal = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(above, left, diagonal));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
