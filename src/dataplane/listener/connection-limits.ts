// Connection limits of listeners, in total and per client address, over all workers; knows no socket.
import type { Listener } from "../../model/listener.ts";
import { connectionsKey } from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { ConnectionSlot } from "./pending-connection.ts";

export class ConnectionLimits {
  readonly #board: TargetBoard;
  readonly #worker: number;

  constructor(board: TargetBoard, worker: number) {
    this.#board = board;
    this.#worker = worker;
  }

  /** Counts a connection; the reason when the listener has too many. */
  admit(listener: Listener): ConnectionSlot | string {
    const [board, worker] = [this.#board, this.#worker];
    const row = board.rowOf(connectionsKey(listener.id));
    board.enter(row, worker);
    if (listener.max_connections > 0 && board.active(row) > listener.max_connections) {
      board.leave(row, worker);
      return "too many connections";
    }
    let isOpen = true;
    let counted: string | null = null;
    return {
      claim(address) {
        const most = listener.max_connections_per_address;
        if (most === 0) return null;
        const admission = board.addresses.enter(listener.id, address, { worker, most });
        if (admission === "counted") counted = address;
        return admission === "refused" ? "too many connections from this address" : null;
      },
      release() {
        if (!isOpen) return;
        isOpen = false;
        board.leave(row, worker);
        if (counted !== null) board.addresses.leave(listener.id, counted, worker);
      },
    };
  }
}
