// The commands that tests send to the gRPC client in Node, and its answers.

export interface ChannelOptions {
  /** Of 127.0.0.1. */
  readonly port: number;
  /** PEM of the CA; none for plain text. */
  readonly ca?: string;
  /** Default: `localhost`. */
  readonly authority?: string;
  /** Channel arguments of gRPC; different ones mean a connection of its own. */
  readonly arguments?: Readonly<Record<string, string | number>>;
}

export interface CallCommand {
  readonly op: "call";
  readonly channel: ChannelOptions;
  readonly method: string;
  readonly kind: "unary" | "client" | "server" | "bidi";
  /** Default: one empty message. */
  readonly messages?: readonly string[];
  /** Messages are filled up to so many bytes. */
  readonly size?: number;
  /** How often the messages are sent; default: once. */
  readonly times?: number;
  /** The client's half of the stream does not end. */
  readonly isLeftOpen?: boolean;
  /** Values of names that end with `-bin` are base64. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  /** The client cancels after so many received messages. */
  readonly cancelAfter?: number;
  readonly cancelAfterMs?: number;
}

export interface CallResult {
  readonly code: number;
  readonly details: string;
  readonly initial: Readonly<Record<string, string>>;
  readonly trailing: Readonly<Record<string, string>>;
  /** The first 20, cut at 200 characters. */
  readonly messages: readonly string[];
  readonly count: number;
  readonly bytes: number;
  readonly elapsedMs: number;
}

/** Bidirectional streams that exchange numbers. */
export interface HeldResult {
  readonly streams: number;
  /** Messages that came back. */
  readonly exchanged: number;
  /** Of the stream with the fewest. */
  readonly fewest: number;
  readonly ended: number;
  readonly broken: readonly string[];
  /** Streams with a message that has not come back, or not yet. */
  readonly lost: number;
}

export interface LoadResult {
  /** Number of calls by status code. */
  readonly codes: Readonly<Record<string, number>>;
  readonly slowestMs: number;
}

export type ClientCommand =
  | CallCommand
  | { readonly op: "calls"; readonly times: number; readonly call: CallCommand }
  | {
      readonly op: "hold";
      readonly channel: ChannelOptions;
      readonly streams: number;
      /** Connections; default: one. */
      readonly channels?: number;
    }
  | { readonly op: "held" | "release" | "unload" | "close" }
  | { readonly op: "load"; readonly lanes: number; readonly call: CallCommand };
