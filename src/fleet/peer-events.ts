// Reads a stream of server-sent events of another node, with bounds; knows no kind of event.
import { type NodeStream, UnreadNode } from "../control/node-reads.ts";

/** Of one event. */
const MAX_CHARACTERS = 1_048_576;
/** A node sends a comment every 15 seconds. */
const SILENCE_MS = 40_000;

/** Resolves when the stream ends. */
export async function readEvents(response: Response, { onEvent }: NodeStream): Promise<void> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  while (reader !== undefined) {
    const { done, value } = await withinSilence(reader);
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    if (rest.length > MAX_CHARACTERS) {
      void reader.cancel().catch(() => undefined);
      throw new UnreadNode("it sent an event of more than 1 MiB");
    }
    for (const block of blocks) {
      const kind = /^event: (\w{1,64})$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (kind !== undefined && data !== undefined) onEvent(kind, data);
    }
  }
}

async function withinSilence(reader: ReadableStreamDefaultReader<Uint8Array>) {
  const silence = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    silence.reject(new UnreadNode("it sent nothing for 40 s"));
    void reader.cancel().catch(() => undefined);
  }, SILENCE_MS);
  try {
    return await Promise.race([reader.read(), silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}
