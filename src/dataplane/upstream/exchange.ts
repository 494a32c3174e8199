// One request and its response on one upstream connection; knows no client and no route.
import { partOf } from "../buffer-release.ts";
import { failures, type ProxyError } from "../error.ts";
import { ChunkedDecoder } from "./chunked-decoder.ts";
import type { ConnectionHandler, UpstreamConnection } from "./connection.ts";
import type { RequestBody } from "./request-body.ts";
import { lenientHeadEnd } from "./lenient-head.ts";
import { type HeadCache, listOf, type ResponseHead } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";
import type { ConnectionPool } from "./pool.ts";
import type {
  ExchangeOwner,
  ExchangeTimeouts,
  UpstreamExchange,
  UpstreamTransport,
} from "./transport.ts";

type Phase = "connecting" | "sending" | "awaiting" | "reading" | "done";

const EMPTY = Buffer.alloc(0);

const USUAL_HEAD_BYTES = 2048;

/** Before a target closes an idle connection. */
const SPARE_MS = 1000;

/** Limits of interim responses (RFC 9110 section 15.2) per exchange, in number and bytes. */
const MAX_INTERIM_RESPONSES = 8;
const MAX_INTERIM_BYTES = 65_536;

/** Drives one attempt. The owner calls `tick`; timeouts need no timer of their own. */
export class Exchange implements ConnectionHandler, UpstreamExchange {
  /** True once a byte of the request may have reached the target. */
  isSent = false;
  readonly #connection: UpstreamConnection;
  readonly #owner: ExchangeOwner;
  readonly #timeouts: ExchangeTimeouts;
  readonly #body: RequestBody | null;
  /** The target's cache. */
  readonly #heads: HeadCache;
  readonly #isReused: boolean;
  #phase: Phase = "connecting";
  #deadline = 0;
  #received: Buffer = EMPTY;
  #head: ResponseHead | null = null;
  #remaining = 0;
  #decoder: ChunkedDecoder | null = null;
  #bodyIsSent: boolean;
  /** Above 0: the target has begun to process the request. */
  #interimResponses = 0;
  #interimBytes = 0;
  #isPaused = false;
  /** Whether anything of the response was not strictly valid: where it ended may be a matter of opinion, so nothing follows. */
  #wasLenient = false;
  /** A 101 that arrived before the request body was sent. */
  #earlySwitch: { readonly head: ResponseHead; readonly rest: Buffer } | null = null;
  #now = 0;

  /** `connection` may still be connecting. Nothing happens before `start`. */
  constructor(connection: UpstreamConnection, heads: HeadCache, owner: ExchangeOwner) {
    this.#connection = connection;
    this.#heads = heads;
    this.#owner = owner;
    this.#timeouts = owner.timeouts;
    this.#body = owner.body;
    this.#isReused = connection.requests > 0;
    this.#bodyIsSent = owner.body === null;
    connection.requests++;
    connection.sentBytes = 0;
    connection.handler = this;
  }

  /** Sends the request, as soon as the connection is open. `now` in the owner's milliseconds. */
  start(now: number): void {
    this.#now = now;
    if (this.#connection.isOpen) this.#send();
    else this.#deadline = after(now, this.#timeouts.connect);
  }

  connected(): void {
    if (this.#phase !== "connecting") return;
    // A reused connection is open at once: saves reading the time.
    this.#owner.request.connectedAt = performance.now();
    this.#send();
  }

  #send(): void {
    this.isSent = true;
    const head = this.#owner.requestHead();
    if (this.#body === null) {
      this.#phase = "awaiting";
      this.#deadline = after(this.#now, this.#timeouts.response);
      this.#connection.writeText(head);
      return;
    }
    this.#phase = "sending";
    this.#sendBody(head, this.#body);
  }

  /** A method of its own: inlined, its closure would be allocated for each request. */
  #sendBody(head: string, body: RequestBody): void {
    this.#deadline = after(this.#now, this.#timeouts.write);
    body.sendTo(head, this.#connection, (error) => this.#bodyEnded(error));
  }

  #bodyEnded(error: ProxyError | null): void {
    if (this.#phase === "done") return;
    if (error !== null) {
      this.#fail(error);
      return;
    }
    this.#bodyIsSent = true;
    const early = this.#earlySwitch;
    if (early !== null) this.#switchProtocols(early.head, early.rest);
    else if (this.#phase === "sending") {
      this.#phase = "awaiting";
      this.#deadline = after(this.#now, this.#timeouts.response);
    }
  }

  drained(): void {
    this.#body?.drained();
  }

  /** Called about ten times a second with the owner's time. */
  tick(now: number): void {
    this.#now = now;
    if (this.#phase === "sending" && this.#body !== null) {
      const overdue = this.#body.overdue(now, this.#timeouts.write);
      if (overdue !== null) this.#fail(overdue);
      return;
    }
    if (now < this.#deadline || this.#isPaused) return;
    switch (this.#phase) {
      case "connecting":
        return this.#fail(failures.connectTimeout);
      case "awaiting":
        return this.#fail(failures.responseTimeout);
      case "reading":
        return this.#fail(failures.readTimeout);
    }
  }

  received(chunk: Buffer): void {
    this.#owner.request.receivedAt = performance.now();
    try {
      if (this.#phase === "reading") this.#bodyBytes(chunk);
      else if (this.#phase === "sending" || this.#phase === "awaiting") this.#headBytes(chunk);
      if (this.#phase !== "reading") return;
      this.#deadline = after(this.#now, this.#timeouts.read);
      this.#owner.onWaiting();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** A malformed response ends the connection and the exchange. */
  refuse(error: unknown): void {
    if (error instanceof ResponseSyntaxError) this.#fail(failures.protocol(error.message));
    else this.#fail(failures.internal(error));
  }

  #headBytes(chunk: Buffer): void {
    const bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const heads = this.#heads;
    const { upstreamMethod, generation } = this.#owner.request;
    const { maxResponseHeadBytes: maxHeadBytes } = generation;
    // One string to find the end and to parse: most heads are as long as the last one, or shorter than USUAL_HEAD_BYTES.
    const usual = heads.usualBytes;
    const isUsual =
      usual > 3 &&
      bytes[usual - 1] === 10 &&
      bytes[usual - 2] === 13 &&
      bytes[usual - 3] === 10 &&
      bytes[usual - 4] === 13;
    let text = bytes.latin1Slice(0, isUsual ? usual : Math.min(USUAL_HEAD_BYTES, bytes.length));
    let end = text.indexOf("\r\n\r\n");
    if (end < 0 && bytes.length > USUAL_HEAD_BYTES) {
      text = bytes.latin1Slice(0, Math.min(maxHeadBytes + 1, bytes.length));
      end = text.indexOf("\r\n\r\n");
    }
    let size = end < 0 ? 0 : end + 4;
    const isHead = upstreamMethod === "HEAD";
    let head: ResponseHead | null = null;
    if (size > 0 && size <= maxHeadBytes)
      try {
        head = heads.read(size === text.length ? text : text.slice(0, size), isHead);
      } catch (error) {
        if (!heads.isLenient || !(error instanceof ResponseSyntaxError)) throw error;
      }
    if (head === null) {
      size = lenientHeadEnd(text);
      if (size > maxHeadBytes || (size === 0 && text.length > maxHeadBytes)) {
        this.#fail(failures.headTooLong);
        return;
      }
      if (size === 0) {
        this.#received = bytes;
        return;
      }
      // Otherwise a target that ends lines with LF alone would run into the timeout.
      if (!heads.isLenient) throw new ResponseSyntaxError("the target's lines do not end in CRLF");
      head = heads.readLenient(text.slice(0, size), isHead);
      this.#wasLenient = true;
    } else heads.usualBytes = size;
    this.#received = EMPTY;
    const rest = size === bytes.length ? EMPTY : partOf(bytes, size);
    if (head.status >= 200) this.#finalHead(head, rest);
    else if (head.status === 101) this.#switchProtocols(head, rest);
    else this.#interim(head, size, rest);
  }

  #interim(head: ResponseHead, size: number, rest: Buffer): void {
    this.#interimResponses++;
    this.#interimBytes += size;
    if (this.#interimResponses > MAX_INTERIM_RESPONSES || this.#interimBytes > MAX_INTERIM_BYTES)
      throw new ResponseSyntaxError("the target sent too many interim responses");
    // 100 is for the body, which the gateway may have sent already.
    if (head.status === 100) this.#body?.continue();
    else this.#owner.onInterim?.(head.status, listOf(head).pairs);
    if (rest.length > 0 && this.#phase !== "done") this.#headBytes(rest);
  }

  #switchProtocols(head: ResponseHead, rest: Buffer): void {
    // Without a request for it, an upgrade would turn the connection into something other than HTTP.
    if (this.#owner.onUpgraded === undefined)
      throw new ResponseSyntaxError("the target switched protocols without being asked");
    // The protocol begins behind the whole request (RFC 9110 section 7.8).
    if (!this.#bodyIsSent) {
      this.#connection.pause();
      this.#earlySwitch = { head, rest };
      return;
    }
    if (this.#earlySwitch !== null) this.#connection.resume();
    this.#phase = "done";
    this.#connection.handler = null;
    this.#owner.onUpgraded(head, this.#connection, rest);
  }

  #finalHead(head: ResponseHead, rest: Buffer): void {
    this.#head = head;
    this.#phase = "reading";
    this.#remaining = head.length;
    if (head.bindsConnection)
      this.#connection.boundTo = this.#owner.request.stream?.boundConnections ?? null;
    if (head.framing === "chunked")
      this.#decoder = new ChunkedDecoder(false, this.#heads.isLenient);
    this.#owner.onHead(head);
    // The owner may have ended the exchange.
    if ((this.#phase as Phase) === "done") return;
    if (head.framing === "none" || head.length === 0) {
      if (rest.length > 0) this.#drop("the target sent bytes after its response");
      this.#finish();
    } else if (rest.length > 0) {
      this.#bodyBytes(rest);
    }
  }

  #bodyBytes(chunk: Buffer): void {
    if (this.#decoder !== null) {
      this.#decode(this.#decoder, chunk);
      return;
    }
    if (this.#head?.framing === "close") {
      this.#owner.onContent(chunk);
      return;
    }
    const isLonger = chunk.length > this.#remaining;
    if (isLonger) this.#drop("the target sent more than its Content-Length");
    const content = isLonger ? partOf(chunk, 0, this.#remaining) : chunk;
    this.#remaining -= content.length;
    this.#owner.onContent(content);
    // The owner may have ended the exchange.
    if (this.#remaining === 0 && this.#phase !== "done") this.#finish();
  }

  #decode(decoder: ChunkedDecoder, chunk: Buffer): void {
    const used = decoder.push(chunk, (piece) => this.#owner.onContent(piece));
    if (used < chunk.length) this.#drop("the target sent bytes after its response");
    if (!decoder.done || this.#phase === "done") return;
    const { trailers } = decoder;
    if (trailers !== null) this.#owner.onTrailers?.(trailers);
    this.#finish();
  }

  /** Bytes behind the end of the response belong to none. */
  #drop(problem: string): void {
    if (!this.#heads.isLenient) throw new ResponseSyntaxError(problem);
    this.#wasLenient = true;
    this.#connection.owner.onSurplus?.();
  }

  /** The response is complete: the connection returns to the pool when both sides allow it. */
  #finish(): void {
    const connection = this.#connection;
    // After a response to an incomplete request the rest of the body would be parsed as the next request.
    const isKept = this.#bodyIsSent && !connection.isHolding && this.#head?.keepAlive === true;
    const mayKeep = isKept && !this.#wasLenient && this.#decoder?.wasLenient !== true;
    this.#owner.onFinished();
    this.#phase = "done";
    if (!this.#bodyIsSent) this.#body?.cancel();
    if (this.#isPaused) connection.resume();
    connection.handler = null;
    if (!mayKeep) return connection.destroy();
    const head = this.#head;
    if (head !== null && (head.announcesBody || head.keepAliveMs > 0)) this.#schedule(head);
    else connection.endsAt = Infinity;
    connection.owner.release(connection, this.#now);
  }

  /** When the connection may serve the next request, and until when. */
  #schedule(head: ResponseHead): void {
    if (head.announcesBody) this.#connection.rest();
    // It might close in the moment of the next request, and that one be lost: so well before that.
    const { keepAliveMs: ms } = head;
    this.#connection.endsAt = ms === 0 ? Infinity : this.#now + Math.max(ms - SPARE_MS, ms / 2);
  }

  ended(error: ProxyError | null, isReset: boolean): void {
    if (this.#phase === "done") return;
    if (this.#phase === "reading") {
      const mayEnd = this.#head?.framing === "close" || this.#decoder?.endsHere() === true;
      if (mayEnd && error === null && !isReset) this.#closeDelimited();
      else this.#fail(error ?? failures.incomplete);
      return;
    }
    if (this.#phase === "connecting") this.#fail(error ?? failures.refused());
    else if (this.#isReused && this.#interimResponses === 0 && this.#received.length === 0)
      this.#fail(
        error ?? (this.#connection.isUnread ? failures.closedUnread : failures.closedKept),
      );
    else
      this.#fail(
        error ?? (this.#received.length === 0 ? failures.closedEarly : failures.incomplete),
      );
  }

  #closeDelimited(): void {
    try {
      this.#finish();
    } catch (error) {
      this.refuse(error);
    }
  }

  #fail(error: ProxyError): void {
    if (this.#phase === "done") return;
    this.abort();
    this.#owner.onFailed(error);
  }

  /** Aborts the exchange: the client went away, or a timeout of the request has passed. */
  abort(): void {
    if (this.#phase === "done") return;
    this.#phase = "done";
    // An unread body goes with the next attempt.
    if (this.isSent) this.#body?.cancel();
    this.#connection.handler = null;
    this.#connection.destroy();
  }

  /** Stops reading while the client does not read; suspends the read timeout. */
  boundReads(): void {
    this.#connection.boundReads();
  }

  pause(): void {
    if (this.#isPaused || this.#phase === "done") return;
    this.#isPaused = true;
    this.#connection.pause();
  }

  resume(now: number): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#phase === "done") return;
    this.#deadline = after(now, this.#timeouts.read);
    this.#connection.resume();
  }
}

/** HTTP/1.1 on the connections of a target. */
export class Http1Transport implements UpstreamTransport {
  readonly #pool: ConnectionPool;
  readonly #heads: HeadCache;

  constructor(pool: ConnectionPool, heads: HeadCache) {
    this.#pool = pool;
    this.#heads = heads;
  }

  open(owner: ExchangeOwner, isFresh: boolean): UpstreamExchange {
    const bound = owner.request.stream?.boundConnections;
    const own = bound === undefined || bound.isEmpty ? null : bound.take(this.#pool);
    return new Exchange(own ?? this.#pool.acquire(isFresh), this.#heads, owner);
  }
}

const after = (now: number, ms: number) => (ms === 0 ? Number.POSITIVE_INFINITY : now + ms);
