// Errors of a command line; knows no command.

/** Ends the program with exit code 2 after it prints the message and a hint to the help. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}
