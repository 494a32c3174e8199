// Opens connections to the targets of streams; knows no client.
import type { Socket, TCPSocketConnectOptions } from "bun";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { TargetRuntime } from "../service-runtime.ts";
import type { TargetHandlers } from "./stream-connection.ts";

/** One attempt: what its socket says after it has failed is nobody's business any more. */
class Attempt {
  readonly verifies: boolean;
  #handlers: TargetHandlers | null;
  #isOpen = false;

  constructor(handlers: TargetHandlers, verifies: boolean) {
    this.#handlers = handlers;
    this.verifies = verifies;
  }

  opened(socket: Socket<unknown>): void {
    this.#isOpen = true;
    this.#handlers?.opened(socket);
  }

  failed(failure: FailureText): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    handlers?.failed(failure);
  }

  sent(chunk: Buffer): void {
    this.#handlers?.sent(chunk);
  }

  drained(): void {
    this.#handlers?.drained();
  }

  ended(): void {
    if (this.#isOpen) this.#handlers?.ended();
    else this.failed("the target closed the connection without an answer");
  }

  closed(isReset: boolean): void {
    if (this.#isOpen) this.#handlers?.closed(isReset);
    else this.failed("the target refused the connection");
    this.#handlers = null;
  }
}

type Handlers = NonNullable<TCPSocketConnectOptions<Attempt>["socket"]>;

/** Connects; the handlers hear `opened` once it is usable, else `failed`. */
export function dial(target: TargetRuntime, handlers: TargetHandlers): void {
  const { hostname, port, tls } = target.endpoint;
  const attempt = new Attempt(handlers, tls?.rejectUnauthorized ?? false);
  const options = {
    hostname,
    port,
    data: attempt,
    // A side that has sent everything may still want to read.
    allowHalfOpen: true,
    socket: tls === null ? plain : encrypted,
    ...(tls === null ? {} : { tls }),
  } as unknown as TCPSocketConnectOptions<Attempt>;
  Bun.connect(options).catch((error: unknown) => attempt.failed(reasonOf(error)));
}

const plain: Handlers = {
  open: (socket) => socket.data.opened(socket as Socket<unknown>),
  data: (socket, chunk) => socket.data.sent(chunk),
  drain: (socket) => socket.data.drained(),
  end: (socket) => socket.data.ended(),
  close: (socket, error) => socket.data.closed(error instanceof Error),
  error: (socket) => socket.data.closed(true),
  connectError: (socket, error) => socket.data.failed(reasonOf(error)),
};

const encrypted: Handlers = {
  ...plain,
  open() {},
  handshake(socket, isAuthorized, error) {
    if (isAuthorized || !socket.data.verifies) socket.data.opened(socket as Socket<unknown>);
    else {
      const { code = "" } = (error as { code?: string } | null) ?? {};
      const isCertificate = /CERT|ISSUER|SIGNATURE|CHAIN|CRL|ALTNAME/.test(code);
      socket.data.failed(
        isCertificate
          ? "the target's certificate is not valid"
          : "the TLS handshake with the target failed",
      );
      socket.terminate();
    }
  },
};

function reasonOf(error: unknown): FailureText {
  const code = (error as { code?: string } | null)?.code;
  const isName = code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "ENODATA";
  return isName ? "the target's name could not be resolved" : "the target refused the connection";
}
