// The body of one HTTP/2 request as it arrives: its length and the client's window; knows no frame.
import { BodyProblem, failures } from "../../error.ts";
import { ReceivedBody } from "../received-body.ts";
import { UNKNOWN } from "./request-head.ts";

export class Http2Body extends ReceivedBody {
  readonly #length: number;
  #received = 0;

  /** `length`: bytes, or `UNKNOWN`. `onRead`: `unread` has become less. */
  constructor(length: number, onRead: () => void) {
    super(onRead);
    this.#length = length;
  }

  /** False: it is longer than declared, and has failed. */
  take(bytes: Buffer, start: number, end: number): boolean {
    this.#received += end - start;
    if (this.#length !== UNKNOWN && this.#received > this.#length) return this.#mismatch();
    if (this.failure !== null || this.isDropped || start === end) return true;
    // A copy: a part would hold all that was read with it, up to 512 KB.
    const piece = Buffer.allocUnsafeSlow(end - start);
    bytes.copy(piece, 0, start, end);
    this.add(piece);
    return true;
  }

  /** All of it has arrived. False: it is shorter than declared, and has failed. */
  end(): boolean {
    if (this.#length !== UNKNOWN && this.#received !== this.#length) return this.#mismatch();
    if (this.failure === null) this.complete();
    return true;
  }

  #mismatch(): false {
    this.fail(
      new BodyProblem(failures.badRequest("the request body is not as long as Content-Length")),
    );
    return false;
  }
}
