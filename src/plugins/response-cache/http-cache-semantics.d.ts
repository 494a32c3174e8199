// Tells the type checker what is used of the package, which brings no types of its own.
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
