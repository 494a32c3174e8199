// The server engines that tests of HTTP/1.1 run on; knows no listener.

/** For `describe.each`: what differs between them is in docs/limits-of-bun.md, and explicit in the tests. */
export const engines = ["standard", "full", "sluice"] as const;

export type Engine = (typeof engines)[number];
