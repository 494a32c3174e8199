// Opens connections to the targets of streams; knows no client.
import type { Socket, TCPSocketConnectOptions } from "bun";
import { isIP } from "node:net";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { Address } from "../names/addresses.ts";
import type { TargetRuntime } from "../service-runtime.ts";
import { tlsFailure } from "../upstream/tls-failure.ts";
import type { Side } from "./pipe.ts";
import type { TargetHandlers } from "./stream-connection.ts";

/** One connection attempt. Ignores its socket's events after a failure. */
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
    this.#handlers?.opened(socket as unknown as Side);
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
    else this.failed("the target closed the connection without a response");
  }

  closed(isReset: boolean): void {
    if (this.#isOpen) this.#handlers?.closed(isReset);
    else this.failed("the target refused the connection");
    this.#handlers = null;
  }
}

type Handlers = NonNullable<TCPSocketConnectOptions<Attempt>["socket"]>;

/** Connects and calls `opened` once the connection is usable, else `failed`. Tries every address of a name. */
export function dial(target: TargetRuntime, handlers: TargetHandlers): void {
  const { addresses } = target.endpoint;
  const tried = new Set<Address>();
  const next = (failure: FailureText): void => {
    const address = addresses.next(tried.size === 0 ? null : tried);
    if (address === null) return handlers.failed(failure);
    tried.add(address);
    connect(target, address, {
      ...bound(handlers),
      failed: (reason) => {
        addresses.failed(address);
        next(reason);
      },
    });
  };
  const unknown = "the target's name could not be resolved";
  if (addresses.size > 0) return next(unknown);
  // Not before this call returns: callers expect no event earlier.
  if (addresses.whenFound(() => next(unknown)) === null)
    queueMicrotask(() => handlers.failed(unknown));
}

/** Bound methods. */
function bound(handlers: TargetHandlers): TargetHandlers {
  return {
    opened: (socket) => handlers.opened(socket),
    failed: (failure) => handlers.failed(failure),
    sent: (chunk) => handlers.sent(chunk),
    drained: () => handlers.drained(),
    ended: () => handlers.ended(),
    closed: (isReset) => handlers.closed(isReset),
  };
}

function connect({ endpoint }: TargetRuntime, address: Address, handlers: TargetHandlers): void {
  const { tls } = endpoint;
  const attempt = new Attempt(handlers, tls?.rejectUnauthorized ?? false);
  const to =
    address.unix === null
      ? { hostname: address.host, port: address.port === 0 ? endpoint.port : address.port }
      : { unix: address.unix };
  const options = {
    ...to,
    data: attempt,
    // A side that has sent FIN may still read.
    allowHalfOpen: true,
    socket: tls === null ? plain : encrypted,
    // Certificates are verified for the name, not for the resolved address.
    ...(tls === null
      ? {}
      : { tls: isIP(endpoint.hostname) === 0 ? { serverName: endpoint.hostname, ...tls } : tls }),
  } as unknown as TCPSocketConnectOptions<Attempt>;
  try {
    Bun.connect(options).catch((error: unknown) => attempt.failed(reasonOf(error)));
  } catch {
    // TLS settings that Bun rejects, such as an invalid CA bundle.
    queueMicrotask(() => attempt.failed("the TLS handshake with the target failed"));
  }
}

const plain: Handlers = {
  open: (socket) => socket.data.opened(socket as Socket<unknown>),
  data: (socket, chunk) => socket.data.sent(chunk),
  drain: (socket) => socket.data.drained(),
  end: (socket) => socket.data.ended(),
  close: (socket, error) => socket.data.closed(error instanceof Error),
  error: (socket) => {
    socket.data.closed(true);
    socket.terminate();
  },
  connectError: (socket, error) => socket.data.failed(reasonOf(error)),
};

const encrypted: Handlers = {
  ...plain,
  open() {},
  handshake(socket, isAuthorized, error) {
    const isCertificate = !isAuthorized && tlsFailure(error).token === "tls_certificate_error";
    if (isAuthorized || (isCertificate && !socket.data.verifies)) {
      socket.data.opened(socket as Socket<unknown>);
      return;
    }
    socket.data.failed(
      isCertificate
        ? "the target's certificate is not valid"
        : "the TLS handshake with the target failed",
    );
    socket.terminate();
  },
};

function reasonOf(error: unknown): FailureText {
  const code = (error as { code?: string } | null)?.code;
  const isName = code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "ENODATA";
  return isName ? "the target's name could not be resolved" : "the target refused the connection";
}
