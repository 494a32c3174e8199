// One change of many objects, sequentially, with one notification; knows no page.
import { notifyError, useKnownRevision, useNotifyDone, useRefresh } from "./changes.tsx";
import type { ApiResponse } from "./connection.ts";
import { useConnection } from "./connection-context.ts";
import { ApiError } from "./error.ts";
import { type ResourceKey, resources } from "./resources.ts";

export type BulkAction = "enable" | "disable" | "delete" | "cascade";

const verbs: Readonly<Record<BulkAction, string>> = {
  enable: "enabled",
  disable: "disabled",
  delete: "deleted",
  cascade: "deleted",
};

/** The gateway brings back neither users nor tokens. */
const STAYS: ReadonlySet<ResourceKey> = new Set(["users", "tokens"]);

/** Id and name, for the notification. */
export interface BulkObject {
  readonly id: string;
  readonly name: string;
}

/** Rejects with the first error; previous changes stay applied and are notified. */
export function useBulk(
  resource: ResourceKey,
): (objects: readonly BulkObject[], action: BulkAction) => Promise<void> {
  const connection = useConnection();
  const refresh = useRefresh();
  const tell = useNotifyDone();
  const knownRevision = useKnownRevision();
  return async (objects, action) => {
    let done = 0;
    const undoable: number[] = [];
    let last: Pick<ApiResponse<unknown>, "revision" | "warning" | "nodes"> = {
      revision: null,
      warning: null,
      nodes: null,
    };
    const send = (id: string) => {
      const path = `/${resource}/${encodeURIComponent(id)}`;
      if (action === "enable" || action === "disable")
        return connection.send(path, { method: "PATCH", body: { enabled: action === "enable" } });
      const query = action === "cascade" ? { cascade: 1 } : {};
      return connection.send(path, { method: "DELETE", query });
    };
    try {
      for (const { id } of objects) {
        try {
          const known = undoable.at(-1) ?? knownRevision();
          last = await send(id);
          if (last.revision !== null && last.revision > known && !STAYS.has(resource))
            undoable.push(last.revision);
        } catch (error) {
          // Deleted by the cascade of a previous one.
          if (action !== "cascade" || !(error instanceof ApiError) || error.status !== 404)
            throw error;
        }
        done++;
      }
    } finally {
      const { word, plural } = resources[resource];
      const what = done === 1 ? `${word} ${objects[0]?.name ?? ""}` : `${done} ${plural}`;
      if (done > 0)
        tell(`${what.charAt(0).toUpperCase()}${what.slice(1)} ${verbs[action]}`, last, undoable);
      await refresh([resource]);
    }
  };
}

/** The same for switches in lists: errors are notified. */
export function useSwitch(
  resource: ResourceKey,
): (object: BulkObject, isOn: boolean) => Promise<void> {
  const bulk = useBulk(resource);
  return (object, isOn) => bulk([object], isOn ? "enable" : "disable").catch(notifyError);
}
