// What a client's frames do to a connection (RFC 9113 sections 4 to 6): their order, states of streams, header blocks; knows no response.
import { NO_PRIORITY, type Priority, readPriority, type ReadyStreams } from "./priorities.ts";
import type { BudgetName, Budgets } from "./budgets.ts";
import type { ClosedStreams } from "./closed-streams.ts";
import {
  CODE,
  ConnectionError,
  FLAG,
  FRAME,
  type Frame,
  FrameReader,
  payloadOf,
  uint31At,
  withoutPadding,
} from "./frames.ts";
import { HpackDecoder } from "./hpack-decoder.ts";
import { HeaderList } from "./request-head.ts";
import { CONNECTION_WINDOW, DEFAULT_WINDOW, MAX_WINDOW, readInitialWindow } from "./settings.ts";
import type { FrameOutput } from "./output.ts";
import { Http2Stream, type StreamConnection } from "./stream.ts";

/** Frames of one header block: 256 KB need sixteen. */
const MAX_CONTINUATIONS = 32;
/** Gaps between ids that are remembered: clients leave none out. */
const MAX_SKIPPED = 32;
/** PRIORITY_UPDATE frames for streams that do not exist yet. */
const MAX_EARLY_PRIORITIES = 100;

const list = new HeaderList();

/** The connection of the frames. */
export interface FramesConnection extends StreamConnection {
  readonly streams: ReadonlyMap<number, Http2Stream>;
  readonly readyStreams: ReadyStreams;
  readonly closedStreams: ClosedStreams;
  readonly output: FrameOutput;
  readonly budgets: Budgets;
  readonly maxStreams: number;
  readonly receiveWindow: number;
  readonly maxHeadBytes: number;
  /** What the client takes of all streams together. */
  sendWindow: number;
  /** Nothing more is read. */
  readonly isOver: boolean;
  /** Throws ConnectionError once a budget is used up. */
  charge(name: BudgetName): void;
  /** A stream of the client begins. */
  serve(stream: Http2Stream): void;
  /** The client has reset a stream. */
  clientReset(stream: Http2Stream): void;
  /** Ends one stream for what the client has sent on it (RFC 9113 section 5.4.2). */
  streamError(id: number, code: number): void;
  reset(id: number, code: number): void;
  /** A PING was acknowledged. */
  acknowledged(payload: Buffer): void;
  /** The client opens no more streams: it has sent GOAWAY. */
  clientLeaves(): void;
}

interface Block {
  readonly stream: number;
  readonly isLast: boolean;
  readonly parts: Buffer[];
  bytes: number;
}

const protocolError = (message: string) => new ConnectionError(CODE.protocol, message);
const sizeError = () => new ConnectionError(CODE.frameSize, "an HTTP/2 frame has a wrong length");

export class PeerFrames {
  /** The highest id that the client has used. */
  lastStream = 0;
  /** The last GOAWAY was sent: streams that follow are ignored. */
  refusesStreams = false;
  readonly #connection: FramesConnection;
  readonly #reader: FrameReader;
  readonly #decoder = new HpackDecoder();
  /** A header block whose end has not arrived. */
  #block: Block | null = null;
  /** Ids that the client has left out: not those of closed streams. */
  readonly #skipped: { readonly from: number; readonly to: number }[] = [];
  readonly #priorities = new Map<number, Priority>();
  /** The client's window of a new stream. */
  #window = DEFAULT_WINDOW;
  /** Bytes that the client may still send on all streams together. */
  #room = CONNECTION_WINDOW;
  readonly #part = { start: 0, end: 0 };
  /** Since when a frame or a head is incomplete; 0: none is. */
  #partialSince: number;
  /** How many frames had arrived then. */
  #partialAt = 0;
  #frames = 0;

  constructor(connection: FramesConnection, now: number) {
    this.#connection = connection;
    this.#reader = new FrameReader((frame) => this.#read(frame));
    this.#partialSince = now;
  }

  get isOpen(): boolean {
    return this.#reader.isOpen;
  }

  /** Throws ConnectionError. */
  push(chunk: Buffer): void {
    this.#reader.push(chunk, () => this.#connection.isOver);
    const isPartial = !this.isOpen || this.#block !== null || this.#reader.isWithinFrame;
    if (!isPartial) this.#partialSince = 0;
    else if (this.#partialSince === 0 || this.#isAnotherPart()) {
      this.#partialSince = performance.now();
      this.#partialAt = this.#frames;
    }
  }

  /** Whether a frame has become complete since, and no header block is open, whose frames belong together. */
  #isAnotherPart(): boolean {
    return this.isOpen && this.#block === null && this.#frames !== this.#partialAt;
  }

  /** Why a client that leaves something incomplete is not waited for any longer; null: it is. */
  late(now: number, timeout: number): string | null {
    if (this.#partialSince === 0 || now - this.#partialSince < timeout) return null;
    return this.isOpen
      ? "the head of a request did not arrive in time"
      : "no complete HTTP/2 preface arrived in time";
  }

  #read(frame: Frame): void {
    this.#frames++;
    const block = this.#block;
    if (block !== null && (frame.type !== FRAME.continuation || frame.stream !== block.stream))
      throw protocolError("an HTTP/2 header block is incomplete");
    switch (frame.type) {
      case FRAME.data:
        return this.#data(frame);
      case FRAME.headers:
        return this.#headers(frame);
      case FRAME.priority:
        return this.#priority(frame);
      case FRAME.rstStream:
        return this.#rstStream(frame);
      case FRAME.settings:
        return this.#settings(frame);
      case FRAME.pushPromise:
        throw protocolError("a client cannot push");
      case FRAME.ping:
        return this.#ping(frame);
      case FRAME.goAway:
        return this.#goAway(frame);
      case FRAME.windowUpdate:
        return this.#windowUpdate(frame);
      case FRAME.continuation:
        return this.#continuation(frame, block);
      case FRAME.priorityUpdate:
        return this.#priorityUpdate(frame);
      default:
        this.#connection.charge("frames");
    }
  }

  /** Frames on streams that have never begun (RFC 9113 section 5.1). */
  #expectBegun(stream: number): void {
    if (stream === 0 || stream > this.lastStream || stream % 2 === 0)
      throw protocolError("an HTTP/2 frame is on a stream that has not begun");
  }

  #data(frame: Frame): void {
    const { stream: id, bytes, flags, start, end } = frame;
    this.#expectBegun(id);
    this.#receive(end - start);
    withoutPadding(frame, this.#part);
    const part = this.#part;
    const isLast = (flags & FLAG.endStream) !== 0;
    const stream = this.#connection.streams.get(id);
    if (part.start === part.end && !isLast) this.#connection.charge("frames");
    if (stream === undefined) {
      this.#onClosed(id);
      if (!this.#connection.closedStreams.take(id, end - start))
        throw new ConnectionError(CODE.flowControl, "a client sends on after a reset");
      if (isLast) this.#connection.closedStreams.ended(id);
      return;
    }
    if (stream.isRemoteEnded) return this.#connection.streamError(id, CODE.streamClosed);
    stream.received += end - start;
    if (stream.received - stream.returned > this.#connection.receiveWindow)
      return this.#connection.streamError(id, CODE.flowControl);
    stream.take(bytes, part.start, part.end);
    if (isLast) stream.endRequest(null);
    else this.#connection.bodyRead(stream);
  }

  /** Counts bytes against the connection's window, which no stream holds back. */
  #receive(size: number): void {
    this.#room -= size;
    if (this.#room < 0)
      throw new ConnectionError(CODE.flowControl, "a client sends more than the window allows");
    const used = CONNECTION_WINDOW - this.#room;
    if (used < CONNECTION_WINDOW / 2) return;
    this.#room = CONNECTION_WINDOW;
    this.#connection.output.uint32(FRAME.windowUpdate, 0, used);
  }

  /** A frame on a stream that is over: sent before the client knew, or an error. */
  #onClosed(id: number): void {
    if (!this.#connection.closedStreams.has(id))
      throw new ConnectionError(CODE.streamClosed, "an HTTP/2 frame is on a closed stream");
  }

  #headers(frame: Frame): void {
    const { stream: id, flags, bytes } = frame;
    if (id % 2 === 0) throw protocolError("an HTTP/2 request has an id that is not valid");
    withoutPadding(frame, this.#part);
    const isLast = (flags & FLAG.endStream) !== 0;
    if ((flags & FLAG.endHeaders) !== 0)
      return this.#blockEnded(id, isLast, { bytes, ...this.#part });
    const part = Buffer.from(bytes.subarray(this.#part.start, this.#part.end));
    this.#block = { stream: id, isLast, parts: [part], bytes: part.length };
  }

  #continuation(frame: Frame, block: Block | null): void {
    if (block === null) throw protocolError("CONTINUATION without HEADERS");
    block.parts.push(Buffer.from(payloadOf(frame)));
    block.bytes += frame.end - frame.start;
    // What is no part of a list that would be served cannot be decoded, and all that follows depends on it.
    const isTooLong = block.bytes > 2 * this.#connection.maxHeadBytes + EXTRA_BLOCK_BYTES;
    if (isTooLong || block.parts.length > MAX_CONTINUATIONS)
      throw new ConnectionError(
        CODE.enhanceYourCalm,
        "an HTTP/2 header block is too long",
        "heads",
      );
    if ((frame.flags & FLAG.endHeaders) === 0) return;
    this.#block = null;
    const bytes = Buffer.concat(block.parts);
    this.#blockEnded(block.stream, block.isLast, { bytes, start: 0, end: bytes.length });
  }

  #blockEnded(
    id: number,
    isLast: boolean,
    block: { readonly bytes: Buffer; readonly start: number; readonly end: number },
  ): void {
    // Always: the table depends on it.
    list.begin(this.#connection.maxHeadBytes);
    this.#decoder.decode(block.bytes, block, list.add);
    const stream = this.#connection.streams.get(id);
    if (stream !== undefined) this.#trailers(stream, isLast);
    else if (id > this.lastStream) this.#begin(id, isLast);
    else if (this.#skipped.some(({ from, to }) => id >= from && id <= to))
      throw protocolError("the id of an HTTP/2 request is below that of an earlier one");
    else {
      this.#onClosed(id);
      if (isLast) this.#connection.closedStreams.ended(id);
    }
  }

  #trailers(stream: Http2Stream, isLast: boolean): void {
    const { id } = stream;
    if (stream.isRemoteEnded) return this.#connection.streamError(id, CODE.streamClosed);
    const trailers = isLast ? list.trailers() : null;
    if (trailers === null) this.#connection.streamError(id, CODE.protocol);
    else stream.endRequest(trailers);
  }

  #begin(id: number, isLast: boolean): void {
    const connection = this.#connection;
    if (this.refusesStreams) return connection.closedStreams.wasReset(id, connection.receiveWindow);
    if (id > this.lastStream + 2 && this.#skipped.length < MAX_SKIPPED)
      this.#skipped.push({ from: this.lastStream + 1, to: id - 1 });
    this.lastStream = id;
    if (connection.streams.size >= connection.maxStreams) {
      connection.reset(id, CODE.refusedStream);
      return connection.charge("refusals");
    }
    const head = list.request(isLast);
    const early = this.#priorities.size === 0 ? undefined : this.#priorities.get(id);
    if (early !== undefined) this.#priorities.delete(id);
    const given = head.priority === null ? NO_PRIORITY : readPriority(head.priority);
    const priority = early ?? given;
    const own = { id, isLast, window: this.#window, priority };
    connection.serve(new Http2Stream(head, connection, own));
  }

  #priority({ stream, start, end }: Frame): void {
    if (stream === 0) throw protocolError("PRIORITY without a stream");
    this.#connection.charge("frames");
    if (end - start === 5) return;
    if (stream > this.lastStream) throw sizeError();
    this.#connection.streamError(stream, CODE.frameSize);
  }

  /** RFC 9218 section 7.1. */
  #priorityUpdate({ stream, bytes, start, end }: Frame): void {
    if (stream !== 0) throw protocolError("PRIORITY_UPDATE on a stream");
    if (end - start < 4) throw sizeError();
    const id = uint31At(bytes, start);
    if (id === 0) throw protocolError("PRIORITY_UPDATE without a stream");
    this.#connection.charge("frames");
    const priority = readPriority(bytes.toString("latin1", start + 4, end));
    const known = this.#connection.streams.get(id);
    if (known !== undefined) this.#connection.readyStreams.change(known, priority);
    else if (id > this.lastStream && this.#priorities.size < MAX_EARLY_PRIORITIES)
      this.#priorities.set(id, priority);
  }

  #rstStream({ stream: id, start, end }: Frame): void {
    this.#expectBegun(id);
    if (end - start !== 4) throw sizeError();
    const stream = this.#connection.streams.get(id);
    if (stream !== undefined) return this.#connection.clientReset(stream);
    if (!this.#connection.closedStreams.ended(id)) this.#connection.charge("frames");
  }

  #settings(frame: Frame): void {
    const { stream, flags, start, end } = frame;
    if (stream !== 0) throw protocolError("SETTINGS on a stream");
    const size = end - start;
    if (((flags & FLAG.ack) !== 0 && size > 0) || size % 6 !== 0) throw sizeError();
    if (this.#frames > 1) this.#connection.charge("frames");
    if ((flags & FLAG.ack) !== 0) return;
    const window = readInitialWindow(frame);
    if (window !== null) this.#setWindow(window);
    this.#connection.output.frame(FRAME.settings, FLAG.ack, { stream: 0, size: 0 });
  }

  /** RFC 9113 section 6.9.2: of open streams too; a window may become negative. */
  #setWindow(window: number): void {
    const change = window - this.#window;
    this.#window = window;
    for (const stream of this.#connection.streams.values()) this.#widen(stream, change);
  }

  #widen(stream: Http2Stream, bytes: number): void {
    const { queue } = stream;
    queue.window += bytes;
    if (queue.window > MAX_WINDOW)
      throw new ConnectionError(CODE.flowControl, "the window of an HTTP/2 stream is too large");
    if (queue.size === 0) return;
    if (queue.window > 0) this.#connection.ready(stream);
    else this.#connection.readyStreams.remove(stream);
  }

  #windowUpdate({ stream: id, bytes, start, end }: Frame): void {
    if (end - start !== 4) throw sizeError();
    const increment = uint31At(bytes, start);
    const connection = this.#connection;
    if (!connection.budgets.takeReply()) connection.charge("frames");
    if (id === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of 0");
      connection.sendWindow += increment;
      if (connection.sendWindow > MAX_WINDOW)
        throw new ConnectionError(
          CODE.flowControl,
          "the window of an HTTP/2 connection is too large",
        );
      return connection.output.schedule();
    }
    this.#expectBegun(id);
    const stream = connection.streams.get(id);
    if (stream === undefined) return;
    if (increment === 0) connection.streamError(id, CODE.protocol);
    else if (stream.queue.window + increment > MAX_WINDOW)
      connection.streamError(id, CODE.flowControl);
    else this.#widen(stream, increment);
  }

  #ping(frame: Frame): void {
    if (frame.stream !== 0) throw protocolError("PING on a stream");
    if (frame.end - frame.start !== 8) throw sizeError();
    const connection = this.#connection;
    if (!connection.budgets.takeReply()) connection.charge("frames");
    const payload = payloadOf(frame);
    if ((frame.flags & FLAG.ack) !== 0) connection.acknowledged(payload);
    else connection.output.copy(FRAME.ping, FLAG.ack, { stream: 0, payload });
  }

  #goAway({ stream, start, end }: Frame): void {
    if (stream !== 0) throw protocolError("GOAWAY on a stream");
    if (end - start < 8) throw sizeError();
    this.#connection.clientLeaves();
  }
}

/** Of a list in Huffman code, and of names that lines of HTTP/1.1 do not have. */
const EXTRA_BLOCK_BYTES = 16_384;
