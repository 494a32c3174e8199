// Copies a body while it streams; knows no request.

/** Passes `source` through; `done` is called once, with the whole body, or null when it is longer or incomplete. */
export function copied(
  source: ReadableStream<Uint8Array>,
  maxBytes: number,
  done: (body: Uint8Array | null) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let pieces: Uint8Array[] | null = [];
  let size = 0;
  const end = (isWhole: boolean) => {
    const all = pieces;
    if (all === null) return;
    pieces = null;
    done(isWhole ? Buffer.concat(all) : null);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done: isOver, value } = await reader.read();
          if (isOver) {
            end(true);
            controller.close();
            return;
          }
          size += value.byteLength;
          if (size > maxBytes) end(false);
          // The reader may transfer the buffer.
          else pieces?.push(value.slice());
          controller.enqueue(value);
        } catch (error) {
          end(false);
          throw error;
        }
      },
      cancel(reason) {
        end(false);
        return reader.cancel(reason);
      },
    },
    // Nothing is read before there is a reader.
    { highWaterMark: 0 },
  );
}
