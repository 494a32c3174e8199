// What a target's frames do to a session (RFC 9113 sections 5 and 8): states of streams, heads and trailers; knows no request.
import { CODE, ConnectionError, type Frame } from "../http2/frames.ts";
import {
  type BlockPlace,
  type FramesOwner,
  PeerFrames,
  protocolError,
} from "../http2/peer-frames.ts";
import type { PeerSettings } from "../http2/settings.ts";
import type { TableEntry } from "../http2/static-table.ts";
import { ResponseList } from "./http2-head.ts";
import type { UpstreamStream } from "./http2-stream.ts";
import { HitRate, TRIAL } from "./hit-rate.ts";

/** Lists that a session remembers by their blocks, and how long a block may be. */
const MAX_KNOWN = 32;
const MAX_KNOWN_BYTES = 1024;
const NO_PREFACE = Buffer.alloc(0);

/** The session of the frames. */
export interface SessionFrames extends FramesOwner<UpstreamStream> {
  /** The highest id that the gateway has used. */
  readonly lastStream: number;
  /** Streams that the gateway has reset, with the bytes that may still arrive on each: sent before the target knew. */
  readonly resetStreams: Map<number, number>;
  /** `null`: the target does not say. */
  targetSettings(maxStreams: number | null): void;
  targetLeaves(lastStream: number, code: number): void;
}

const NOTHING = [] as const;

interface KnownBlock {
  readonly list: ResponseList;
  /** What it adds to the table. */
  readonly added: readonly TableEntry[];
  /** Of the table that it refers to; null: to none. */
  readonly version: number | null;
}

export class TargetFrames extends PeerFrames<UpstreamStream, SessionFrames> {
  readonly #known = new Map<string, KnownBlock>();
  readonly #rate = new HitRate();
  #list = new ResponseList();
  readonly #add = (name: string, value: string) => this.#list.add(name, value);

  constructor(connection: SessionFrames) {
    super(connection, NO_PREFACE);
  }

  protected hasBegun(id: number): boolean {
    return id > 0 && id <= this.connection.lastStream && id % 2 === 1;
  }

  protected onData(frame: Frame, isLast: boolean): void {
    const { connection, part } = this;
    const { stream: id, bytes, start, end } = frame;
    const isEmpty = part.start === part.end;
    if (isEmpty && !isLast && !connection.budgets.takeReply()) connection.charge("frames");
    const stream = this.#open(id, isLast);
    if (stream === null) return this.#afterReset(id, end - start, isLast);
    stream.room -= end - start;
    if (stream.room < 0) return connection.streamError(id, CODE.flowControl);
    stream.data(bytes, part);
    if (isLast) stream.ended(NOTHING);
  }

  /** The stream of a frame; null: the gateway has reset it. Throws ConnectionError when the target had ended it. */
  #open(id: number, isLast: boolean): UpstreamStream | null {
    const stream = this.connection.streams.get(id);
    if (stream !== undefined && !stream.isRemoteEnded) {
      stream.isRemoteEnded = isLast;
      return stream;
    }
    if (stream !== undefined || !this.connection.resetStreams.has(id))
      throw new ConnectionError(CODE.streamClosed, "an HTTP/2 frame is on a closed stream");
    return null;
  }

  #afterReset(id: number, bytes: number, isLast: boolean): void {
    const { resetStreams } = this.connection;
    const room = (resetStreams.get(id) ?? 0) - bytes;
    if (room < 0) throw new ConnectionError(CODE.flowControl, "a target sends on after a reset");
    if (isLast) resetStreams.delete(id);
    else resetStreams.set(id, room);
  }

  protected onBlock(id: number, isLast: boolean, block: BlockPlace): void {
    if (id > this.connection.lastStream)
      throw protocolError("the target responded on a stream that was never opened");
    // Always: the table depends on it.
    const list = this.#read(block);
    const stream = this.#open(id, isLast);
    if (stream === null) return this.#afterReset(id, 0, isLast);
    stream.fields(list, isLast);
  }

  /** Under load most heads and trailers of a target are equal: decoding them costs more than all the rest of a short response. */
  #read(block: BlockPlace): ResponseList {
    const { bytes, start, end } = block;
    const { decoder } = this;
    const rate = this.#rate;
    if (end - start > MAX_KNOWN_BYTES || rate.bypassed > 0) {
      rate.bypassed = Math.max(0, rate.bypassed - 1);
      return this.#decode(block);
    }
    const key = bytes.latin1Slice(start, end);
    const known = this.#known.get(key);
    const isValid = known !== undefined && (known.version ?? decoder.version) === decoder.version;
    if (isValid) rate.known++;
    if (++rate.seen === TRIAL && rate.isPoor()) this.#known.clear();
    if (isValid) {
      for (const entry of known.added) decoder.add(entry);
      return known.list;
    }
    const added: TableEntry[] = [];
    decoder.added = added;
    const list = this.#decode(block);
    decoder.added = null;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    if (!decoder.dependsOnTable) this.#known.set(key, { list, added, version: null });
    else if (added.length === 0) this.#known.set(key, { list, added, version: decoder.version });
    return list;
  }

  #decode(block: BlockPlace): ResponseList {
    this.#list = new ResponseList();
    this.decoder.decode(block.bytes, block, this.#add);
    return this.#list;
  }

  protected onReset(id: number, code: number): void {
    const stream = this.connection.streams.get(id);
    if (stream !== undefined) return stream.wasReset(code);
    if (!this.connection.resetStreams.delete(id)) this.connection.charge("frames");
  }

  protected onSettings({ maxStreams, enablesPush }: PeerSettings): void {
    // RFC 9113 section 6.5.2.
    if (enablesPush) throw protocolError("an HTTP/2 setting is not valid");
    this.connection.targetSettings(maxStreams);
  }

  protected onGoAway(lastStream: number, code: number): void {
    this.connection.charge("frames");
    this.connection.targetLeaves(lastStream, code);
  }

  /** RFC 9218 section 7.1: clients send it. */
  protected onPriorityUpdate(): void {
    throw protocolError("a target sends PRIORITY_UPDATE");
  }
}
