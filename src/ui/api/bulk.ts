// One change made to many objects, one after the other, and told once; knows no page.
import { tellError, useRefresh, useTellDone } from "./changes.tsx";
import type { Answer } from "./connection.ts";
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

/** Names of what is meant, for the message. */
export interface BulkObject {
  readonly id: string;
  readonly name: string;
}

/** Rejects with the first refusal; what was done before it stays done and is told. */
export function useBulk(
  resource: ResourceKey,
): (objects: readonly BulkObject[], action: BulkAction) => Promise<void> {
  const connection = useConnection();
  const refresh = useRefresh();
  const tell = useTellDone();
  return async (objects, action) => {
    let done = 0;
    let last: Pick<Answer<unknown>, "revision" | "warning"> = { revision: null, warning: null };
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
          last = await send(id);
        } catch (error) {
          // It went along with one of those before.
          if (action !== "cascade" || !(error instanceof ApiError) || error.status !== 404)
            throw error;
        }
        done++;
      }
    } finally {
      const { word, plural } = resources[resource];
      const what = done === 1 ? `${word} ${objects[0]?.name ?? ""}` : `${done} ${plural}`;
      if (done > 0) tell(`${what.charAt(0).toUpperCase()}${what.slice(1)} ${verbs[action]}`, last);
      await refresh([resource]);
    }
  };
}

/** The same for switches in lists: failures are told. */
export function useSwitch(
  resource: ResourceKey,
): (object: BulkObject, isOn: boolean) => Promise<void> {
  const bulk = useBulk(resource);
  return (object, isOn) => bulk([object], isOn ? "enable" : "disable").catch(tellError);
}
