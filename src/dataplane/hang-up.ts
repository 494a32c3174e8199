// Ends a connection without an answer; knows no reason for it.

/**
 * Bun.serve has no call for it, but resets a connection whose answer's body failed before it began. The reason is null because
 * Bun prints any other one.
 */
export function hangUp(): Response {
  return new Response(new ReadableStream({ start: (controller) => controller.error(null) }));
}
