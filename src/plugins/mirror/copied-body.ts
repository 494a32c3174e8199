// A body that is copied while it passes; knows no request.

/** Passes on what `source` gives; `done` gets all of it at the end, null when it is longer or breaks off. Called once. */
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
          // Whoever reads it may give its memory away.
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
    // Nothing is read before somebody wants it.
    { highWaterMark: 0 },
  );
}
