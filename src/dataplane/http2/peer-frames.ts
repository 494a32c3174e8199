// What frames do to a connection on either side (RFC 9113 sections 4 to 6): their form and order, header blocks, windows; knows no message.
import type { BudgetName, Budgets } from "./budgets.ts";
import {
  checkPriority,
  CODE,
  ConnectionError,
  FLAG,
  FRAME,
  type Frame,
  FrameReader,
  payloadOf,
  uint31At,
  uint32At,
  withoutPadding,
} from "./frames.ts";
import { HpackDecoder } from "./hpack-decoder.ts";
import type { FrameOutput } from "./output.ts";
import type { ReadyStream, ReadyStreams } from "./priorities.ts";
import type { SendQueue } from "./send-queue.ts";
import {
  CONNECTION_WINDOW,
  DEFAULT_WINDOW,
  MAX_WINDOW,
  type PeerSettings,
  readSettings,
} from "./settings.ts";

/** A stream whose body the gateway sends. */
export interface SendingStream extends ReadyStream {
  readonly queue: SendQueue;
}

/** The connection of the frames. */
export interface FramesOwner<Stream extends SendingStream> {
  readonly streams: ReadonlyMap<number, Stream>;
  readonly readyStreams: ReadyStreams;
  readonly output: FrameOutput;
  readonly budgets: Budgets;
  /** Of a header block, before it is decoded. */
  readonly maxBlockBytes: number;
  readonly maxBlockFrames: number;
  /** What the peer takes of all streams together. */
  sendWindow: number;
  /** Nothing more is read. */
  readonly isOver: boolean;
  /** Throws ConnectionError once a budget is used up. */
  charge(name: BudgetName): void;
  /** The stream's queue has bytes. */
  ready(stream: Stream): void;
  /** Ends one stream for what the peer has sent on it (RFC 9113 section 5.4.2). */
  streamError(id: number, code: number): void;
  /** A PING was acknowledged. */
  acknowledged(payload: Buffer): void;
}

interface Block {
  readonly stream: number;
  readonly isLast: boolean;
  readonly parts: Buffer[];
  bytes: number;
}

/** Where a header block is. */
export interface BlockPlace {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

export const protocolError = (message: string) => new ConnectionError(CODE.protocol, message);
export const sizeError = () =>
  new ConnectionError(CODE.frameSize, "an HTTP/2 frame has a wrong length");

export abstract class PeerFrames<Stream extends SendingStream, Owner extends FramesOwner<Stream>> {
  protected readonly connection: Owner;
  protected readonly reader: FrameReader;
  protected readonly decoder = new HpackDecoder();
  /** The payload of the current frame without padding. */
  protected readonly part = { start: 0, end: 0 };
  /** Frames that have arrived. */
  protected frames = 0;
  /** The stream of the last one. */
  currentStream = 0;
  /** The peer's window of a new stream. */
  window = DEFAULT_WINDOW;
  /** A header block whose end has not arrived. */
  #block: Block | null = null;
  /** Bytes that the peer may still send on all streams together. */
  #room = CONNECTION_WINDOW;

  constructor(connection: Owner, preface: Buffer) {
    this.connection = connection;
    this.reader = new FrameReader((frame) => this.#read(frame), preface);
  }

  /** Whether a stream with this id has begun. */
  protected abstract hasBegun(id: number): boolean;
  /** `part` is the content. */
  protected abstract onData(frame: Frame, isLast: boolean): void;
  protected abstract onBlock(id: number, isLast: boolean, block: BlockPlace): void;
  protected abstract onReset(id: number, code: number): void;
  protected abstract onSettings(settings: PeerSettings): void;
  protected abstract onGoAway(lastStream: number, code: number): void;
  protected abstract onPriorityUpdate(frame: Frame): void;

  /** Whether the preface and the first SETTINGS have arrived. */
  get isOpen(): boolean {
    return this.reader.isOpen;
  }

  protected get isWithinBlock(): boolean {
    return this.#block !== null;
  }

  /** Throws ConnectionError. */
  push(chunk: Buffer): void {
    this.reader.push(chunk, () => this.connection.isOver);
  }

  #read(frame: Frame): void {
    this.frames++;
    this.currentStream = frame.stream;
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
        throw protocolError("an HTTP/2 peer pushes");
      case FRAME.ping:
        return this.#ping(frame);
      case FRAME.goAway:
        return this.#goAway(frame);
      case FRAME.windowUpdate:
        return this.#windowUpdate(frame);
      case FRAME.continuation:
        return this.#continuation(frame, block);
      case FRAME.priorityUpdate:
        return this.onPriorityUpdate(frame);
      default:
        this.connection.charge("frames");
    }
  }

  /** Frames on streams that have never begun (RFC 9113 section 5.1). */
  #expectBegun(id: number): void {
    if (!this.hasBegun(id))
      throw protocolError("an HTTP/2 frame is on a stream that has not begun");
  }

  #data(frame: Frame): void {
    this.#expectBegun(frame.stream);
    this.#receive(frame.end - frame.start);
    withoutPadding(frame, this.part);
    this.onData(frame, (frame.flags & FLAG.endStream) !== 0);
  }

  /** Counts bytes against the connection's window, which no stream holds back. */
  #receive(size: number): void {
    this.#room -= size;
    if (this.#room < 0)
      throw new ConnectionError(
        CODE.flowControl,
        "an HTTP/2 peer sends more than the window allows",
      );
    const used = CONNECTION_WINDOW - this.#room;
    if (used < CONNECTION_WINDOW / 2) return;
    this.#room = CONNECTION_WINDOW;
    this.connection.output.uint32(FRAME.windowUpdate, 0, used);
  }

  #headers(frame: Frame): void {
    const { stream: id, flags, bytes } = frame;
    if (id % 2 === 0) throw protocolError("an HTTP/2 header block has an id that is not valid");
    withoutPadding(frame, this.part);
    const isLast = (flags & FLAG.endStream) !== 0;
    const { start, end } = this.part;
    if ((flags & FLAG.endHeaders) !== 0) return this.onBlock(id, isLast, { bytes, start, end });
    const first = Buffer.from(bytes.subarray(start, end));
    this.#block = { stream: id, isLast, parts: [first], bytes: first.length };
  }

  #continuation(frame: Frame, block: Block | null): void {
    if (block === null) throw protocolError("CONTINUATION without HEADERS");
    block.parts.push(Buffer.from(payloadOf(frame)));
    block.bytes += frame.end - frame.start;
    const { maxBlockBytes, maxBlockFrames } = this.connection;
    // What is no part of a list that would be read cannot be decoded, and all that follows depends on it.
    if (block.bytes > maxBlockBytes || block.parts.length > maxBlockFrames)
      throw new ConnectionError(
        CODE.enhanceYourCalm,
        "an HTTP/2 header block is too long",
        "heads",
      );
    if ((frame.flags & FLAG.endHeaders) === 0) return;
    this.#block = null;
    const bytes = Buffer.concat(block.parts);
    this.onBlock(block.stream, block.isLast, { bytes, start: 0, end: bytes.length });
  }

  #priority(frame: Frame): void {
    const { stream, start, end } = frame;
    if (stream === 0) throw protocolError("PRIORITY without a stream");
    this.connection.charge("frames");
    if (end - start === 5) return checkPriority(frame, start);
    if (!this.hasBegun(stream)) throw sizeError();
    this.connection.streamError(stream, CODE.frameSize);
  }

  #rstStream({ stream, bytes, start, end }: Frame): void {
    this.#expectBegun(stream);
    if (end - start !== 4) throw sizeError();
    this.onReset(stream, uint32At(bytes, start));
  }

  #settings(frame: Frame): void {
    const { stream, flags, start, end } = frame;
    if (stream !== 0) throw protocolError("SETTINGS on a stream");
    const size = end - start;
    if (((flags & FLAG.ack) !== 0 && size > 0) || size % 6 !== 0) throw sizeError();
    if (this.frames > 1) this.connection.charge("frames");
    if ((flags & FLAG.ack) !== 0) return;
    const settings = readSettings(frame);
    if (settings.window !== null) this.#setWindow(settings.window);
    this.connection.output.frame(FRAME.settings, FLAG.ack, { stream: 0, size: 0 });
    this.onSettings(settings);
  }

  /** RFC 9113 section 6.9.2: of open streams too; a window may become negative. */
  #setWindow(window: number): void {
    const change = window - this.window;
    this.window = window;
    for (const stream of this.connection.streams.values()) this.#widen(stream, change);
  }

  #widen(stream: Stream, bytes: number): void {
    const { queue } = stream;
    queue.window += bytes;
    if (queue.window > MAX_WINDOW)
      throw new ConnectionError(CODE.flowControl, "the window of an HTTP/2 stream is too large");
    if (queue.size === 0) return;
    if (queue.window > 0) this.connection.ready(stream);
    else this.connection.readyStreams.remove(stream);
  }

  #windowUpdate({ stream: id, bytes, start, end }: Frame): void {
    if (end - start !== 4) throw sizeError();
    const increment = uint31At(bytes, start);
    const { connection } = this;
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
    const { connection } = this;
    if (!connection.budgets.takeReply()) connection.charge("frames");
    const payload = payloadOf(frame);
    if ((frame.flags & FLAG.ack) !== 0) connection.acknowledged(payload);
    else connection.output.copy(FRAME.ping, FLAG.ack, { stream: 0, payload });
  }

  #goAway({ stream, bytes, start, end }: Frame): void {
    if (stream !== 0) throw protocolError("GOAWAY on a stream");
    if (end - start < 8) throw sizeError();
    this.onGoAway(uint31At(bytes, start), uint32At(bytes, start + 4));
  }
}
