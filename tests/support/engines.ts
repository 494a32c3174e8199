// The HTTP engines that tests run on; knows no listener.

/** For `describe.each`: what differs between them is in docs/limits-of-bun.md, and explicit in the tests. */
export const engines = ["bun", "sluice"] as const;

export type Engine = (typeof engines)[number];

/** The engine of listeners in tests that name none; empty: the product's default. `make test ARGS=` on another engine. */
export const testedEngine = process.env["SLUICE_TEST_ENGINE"] ?? "";

/** For a listener that names no engine. */
export const engineOf = (listener: {
  readonly engine?: string | undefined;
}): { readonly engine?: string } =>
  testedEngine === "" || listener.engine !== undefined ? {} : { engine: testedEngine };

/** Whether the frames of WebSockets pass as they are; else the gateway reads messages and answers for the client's end. */
export const hasTunnels = testedEngine !== "bun";

/** Whether a streamed response of that engine has its Content-Length, as a buffered one has. */
export const streamsKeepLength = testedEngine !== "bun";
