// Reads a secret from a terminal, without showing it, or from a pipe; knows not what it is for.
import { UsageError } from "./usage-error.ts";

/** More than a valid password has. */
const MAX_CHARACTERS = 4096;

const INTERRUPT = "\u0003";
const END = "\u0004";
const ERASE = /[\b\x7f]/;

/** The first line, without its end. `question`: for terminals, on standard error. */
export async function readSecretLine(question: string): Promise<string> {
  if (!process.stdin.isTTY) return await firstLine(Bun.stdin.stream());
  process.stderr.write(question);
  process.stdin.setRawMode(true);
  try {
    return await typedLine(Bun.stdin.stream());
  } finally {
    process.stdin.setRawMode(false);
    process.stderr.write("\n");
  }
}

async function typedLine(input: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let typed = "";
  for await (const chunk of input)
    for (const character of decoder.decode(chunk, { stream: true })) {
      if (character === "\r" || character === "\n" || character === END) return typed;
      if (character === INTERRUPT) throw new UsageError("interrupted");
      if (ERASE.test(character)) typed = [...typed].slice(0, -1).join("");
      else if (typed.length < MAX_CHARACTERS) typed += character;
    }
  return typed;
}

/** Of a pipe or a file. */
export async function firstLine(input: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of input) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n") || text.length > MAX_CHARACTERS) break;
  }
  return (text.split("\n")[0] ?? "").replace(/\r$/, "").slice(0, MAX_CHARACTERS);
}
