// Says on a terminal that a command is at work, when it takes long; knows no command.

/** A script or a log gets what matters alone. */
const write = (line: string) => {
  if (process.stderr.isTTY) process.stderr.write(`sluice: ${line}\n`);
};

/** Before the first line, and between two of them. */
const FIRST_MS = 2000;
const NEXT_MS = 10_000;

/** `text`: what is being done, such as `the gateway applies x.yaml`. */
export async function withProgress<T>(text: string, work: Promise<T>): Promise<T> {
  const start = performance.now();
  const say = () => {
    const seconds = Math.floor((performance.now() - start) / 1000);
    write(`${text}: ${seconds} s so far`);
    timer = setTimeout(say, NEXT_MS);
  };
  let timer = setTimeout(say, FIRST_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** For work that holds this thread: call it between two steps with what comes next. */
export function stepsOf(): (text: string) => void {
  const start = performance.now();
  return (text) => {
    if (performance.now() - start >= FIRST_MS) write(text);
  };
}
