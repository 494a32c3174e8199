// What a client's frames do to a connection (RFC 9113 sections 5 and 8): states of streams, requests, time limits; knows no response.
import type { Frame } from "../../http2/frames.ts";
import { CODE, ConnectionError, PREFACE, uint31At } from "../../http2/frames.ts";
import {
  type BlockPlace,
  type FramesOwner,
  PeerFrames,
  protocolError,
  sizeError,
} from "../../http2/peer-frames.ts";
import { NO_PRIORITY, type Priority, readPriority } from "../../http2/priorities.ts";
import type { PeerSettings } from "../../http2/settings.ts";
import type { ClosedStreams } from "./closed-streams.ts";
import { RepeatedBlock } from "./repeated-block.ts";
import { HeaderList, type Http2Head } from "./request-head.ts";
import { Http2Stream, type StreamConnection } from "./stream.ts";

/** Gaps between ids that are remembered: clients leave none out. */
const MAX_SKIPPED = 32;
/** PRIORITY_UPDATE frames for streams that do not exist yet. */
const MAX_EARLY_PRIORITIES = 100;

const list = new HeaderList();

/** The connection of the frames. */
export interface FramesConnection extends FramesOwner<Http2Stream>, StreamConnection {
  readonly closedStreams: ClosedStreams;
  readonly maxStreams: number;
  readonly receiveWindow: number;
  readonly maxHeadBytes: number;
  ready(stream: Http2Stream): void;
  /** A stream of the client begins. */
  serve(stream: Http2Stream): void;
  /** The client has reset a stream. */
  clientReset(stream: Http2Stream): void;
  reset(id: number, code: number): void;
  /** The client opens no more streams: it has sent GOAWAY. */
  clientLeaves(): void;
}

export class ClientFrames extends PeerFrames<Http2Stream, FramesConnection> {
  /** The highest id that the client has used. */
  lastStream = 0;
  /** The last GOAWAY was sent: streams that follow are ignored. */
  refusesStreams = false;
  /** Ids that the client has left out: not those of closed streams. */
  readonly #skipped: { readonly from: number; readonly to: number }[] = [];
  readonly #priorities = new Map<number, Priority>();
  readonly #repeated = new RepeatedBlock();
  /** Since when a frame or a head is incomplete; 0: none is. */
  #partialSince: number;
  /** How many frames had arrived then. */
  #partialAt = 0;

  constructor(connection: FramesConnection, now: number) {
    super(connection, PREFACE);
    this.#partialSince = now;
  }

  override push(chunk: Buffer): void {
    super.push(chunk);
    const isPartial = !this.isOpen || this.isWithinBlock || this.reader.isWithinFrame;
    if (!isPartial) this.#partialSince = 0;
    else if (this.#partialSince === 0 || this.#isAnotherPart()) {
      this.#partialSince = performance.now();
      this.#partialAt = this.frames;
    }
  }

  /** Whether a frame has become complete since, and no header block is open, whose frames belong together. */
  #isAnotherPart(): boolean {
    return this.isOpen && !this.isWithinBlock && this.frames !== this.#partialAt;
  }

  /** The connection is idle: thousands of such cost little. */
  rest(): void {
    this.#repeated.clear();
  }

  /** Why a client that leaves something incomplete is not waited for any longer; null: it is. */
  late(now: number, timeout: number): string | null {
    if (this.#partialSince === 0 || now - this.#partialSince < timeout) return null;
    return this.isOpen
      ? "the head of a request did not arrive in time"
      : "no complete HTTP/2 preface arrived in time";
  }

  protected hasBegun(id: number): boolean {
    return id > 0 && id <= this.lastStream && id % 2 === 1;
  }

  protected onData(frame: Frame, isLast: boolean): void {
    const { connection, part } = this;
    const { stream: id, bytes, start, end } = frame;
    const stream = connection.streams.get(id);
    if (part.start === part.end && !isLast) connection.charge("frames");
    if (stream === undefined) {
      this.#onClosed(id);
      if (!connection.closedStreams.take(id, end - start))
        throw new ConnectionError(CODE.flowControl, "a client sends on after a reset");
      if (isLast) connection.closedStreams.ended(id);
      return;
    }
    if (stream.isRemoteEnded) return connection.streamError(id, CODE.streamClosed);
    stream.received += end - start;
    if (stream.received - stream.returned > connection.receiveWindow + stream.grown)
      return connection.streamError(id, CODE.flowControl);
    stream.take(bytes, part.start, part.end);
    if (isLast) stream.endRequest(null);
    else connection.bodyRead(stream);
  }

  /** A frame on a stream that is over: sent before the client knew, or an error. */
  #onClosed(id: number): void {
    if (!this.connection.closedStreams.has(id))
      throw new ConnectionError(CODE.streamClosed, "an HTTP/2 frame is on a closed stream");
  }

  protected onBlock(id: number, isLast: boolean, block: BlockPlace): void {
    const { decoder } = this;
    const stream = this.connection.streams.get(id);
    const begins = stream === undefined && id > this.lastStream;
    const { version } = decoder;
    const maxBytes = this.connection.maxHeadBytes;
    const context = { version, isLast, maxBytes };
    const repeated = begins ? this.#repeated.find(block, context) : null;
    if (repeated !== null) return this.#begin(id, isLast, repeated);
    // Always: the table depends on it.
    list.begin(maxBytes);
    decoder.decode(block.bytes, block, list.add);
    if (stream !== undefined) this.#trailers(stream, isLast);
    else if (begins) {
      const head = list.request(isLast);
      const isPlain = head.problem === null && head.protocol === null;
      if (isPlain && decoder.version === version) this.#repeated.keep(block, context, head);
      this.#begin(id, isLast, head);
    } else if (this.#skipped.some(({ from, to }) => id >= from && id <= to))
      throw protocolError("the id of an HTTP/2 request is below that of an earlier one");
    else {
      this.#onClosed(id);
      if (isLast) this.connection.closedStreams.ended(id);
    }
  }

  #trailers(stream: Http2Stream, isLast: boolean): void {
    const { id } = stream;
    if (stream.isRemoteEnded) return this.connection.streamError(id, CODE.streamClosed);
    const trailers = isLast ? list.trailers() : null;
    if (trailers === null) this.connection.streamError(id, CODE.protocol);
    else stream.endRequest(trailers);
  }

  #begin(id: number, isLast: boolean, head: Http2Head): void {
    const { connection } = this;
    if (this.refusesStreams) return connection.closedStreams.wasReset(id, connection.receiveWindow);
    if (id > this.lastStream + 2 && this.#skipped.length < MAX_SKIPPED)
      this.#skipped.push({ from: this.lastStream + 1, to: id - 1 });
    this.lastStream = id;
    if (connection.streams.size >= connection.maxStreams) {
      connection.reset(id, CODE.refusedStream);
      return connection.charge("refusals");
    }
    const early = this.#priorities.size === 0 ? undefined : this.#priorities.get(id);
    if (early !== undefined) this.#priorities.delete(id);
    const given = head.priority === null ? NO_PRIORITY : readPriority(head.priority);
    const priority = early ?? given;
    const own = { id, isLast, window: this.window, priority };
    connection.serve(new Http2Stream(head, connection, own));
  }

  /** RFC 9218 section 7.1. */
  protected onPriorityUpdate({ stream, bytes, start, end }: Frame): void {
    if (stream !== 0) throw protocolError("PRIORITY_UPDATE on a stream");
    if (end - start < 4) throw sizeError();
    const id = uint31At(bytes, start);
    if (id === 0) throw protocolError("PRIORITY_UPDATE without a stream");
    this.connection.charge("frames");
    const priority = readPriority(bytes.toString("latin1", start + 4, end));
    const known = this.connection.streams.get(id);
    if (known !== undefined) this.connection.readyStreams.change(known, priority);
    else if (id > this.lastStream && this.#priorities.size < MAX_EARLY_PRIORITIES)
      this.#priorities.set(id, priority);
  }

  protected onReset(id: number): void {
    const stream = this.connection.streams.get(id);
    if (stream !== undefined) return this.connection.clientReset(stream);
    if (!this.connection.closedStreams.ended(id)) this.connection.charge("frames");
  }

  protected onSettings({ maxStreams: _ }: PeerSettings): void {}

  protected onGoAway(): void {
    this.connection.clientLeaves();
  }
}
