// Types of the used parts of the package, which has none of its own.
declare module "http-cache-semantics" {
  interface Message {
    readonly headers: Readonly<Record<string, string>>;
  }

  export default class CachePolicy {
    constructor(
      request: Message & { readonly method: string },
      response: Message & { readonly status: number },
      options: {
        readonly shared: boolean;
        readonly cacheHeuristic: number;
        readonly immutableMinTimeToLive: number;
      },
    );
    storable(): boolean;
    /** Seconds. */
    maxAge(): number;
    /** Milliseconds. */
    timeToLive(): number;
  }
}
