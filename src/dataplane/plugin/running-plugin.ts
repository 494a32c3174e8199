// Says which plugin from a directory has the thread, and where its errors come from; knows no handler and no response.
import type { BodyTransform } from "../../pdk/context.ts";
import { placeOf } from "../../pdk/plugin-code.ts";

export interface RunningPlugin {
  /** Number of the plugin, see `PluginCode`. */
  readonly number: number;
  /** The cell of this worker that holds the number of the plugin that runs. */
  readonly running: Float64Array;
}

/** Runs `work` as this plugin. */
export function running<T>(
  { number, running: cell }: RunningPlugin,
  phase: string,
  work: () => T,
): T {
  const before = cell[0] ?? 0;
  cell[0] = number;
  try {
    return work();
  } catch (error) {
    throw located(error, phase);
  } finally {
    cell[0] = before;
  }
}

/** An error whose message has phase, file and line. */
export function located(error: unknown, phase: string): Error {
  const message = error instanceof Error ? error.message : String(error);
  const place = placeOf(error);
  return new Error(`${phase}: ${message}${place === null ? "" : ` (${place})`}`, { cause: error });
}

/** Of this worker; null: no plugin is from a directory. */
let ownCell: Float64Array | null = null;

export function useRunningCell(cell: Float64Array): void {
  ownCell = cell;
}

/** The transform, guarded when a plugin from a directory is adding it. */
export function guardTransform(transform: BodyTransform): BodyTransform {
  const cell = ownCell;
  const number = cell?.[0] ?? 0;
  if (cell === null || number === 0) return transform;
  const as = { number, running: cell };
  const { isObserver = false, isSlow = false, pieceBytes, whole, abort } = transform;
  return {
    isObserver,
    isSlow,
    ...(pieceBytes === undefined ? {} : { pieceBytes }),
    push: (chunk) => running(as, "response", () => transform.push(chunk)),
    end: (trailers) => running(as, "response", () => transform.end(trailers)),
    // The gateway asks whether they are there.
    ...(whole === undefined
      ? {}
      : {
          whole: (...arrived: Parameters<typeof whole>) =>
            running(as, "response", () => whole.apply(transform, arrived)),
        }),
    ...(abort === undefined
      ? {}
      : { abort: () => running(as, "response", () => abort.call(transform)) }),
  };
}
