// Mutations: sent once, with a notification, and a refetch of everything they touch.
import { Button, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/react-query";
import type { ApiResponse, LiveNodes, SendOptions } from "./connection.ts";
import { useConnection } from "./connection-context.ts";
import { ApiError, toMessage } from "./error.ts";
import { queryKeys } from "./queries.ts";
import {
  nameOf,
  type Read,
  type ResourceKey,
  resources,
  type Schemas,
  type Write,
} from "./resources.ts";

export interface ChangeOptions<T, V> {
  /** Sends the change; may use several calls. */
  readonly send: (variables: V) => Promise<ApiResponse<T>>;
  /** Resources to refetch; a path such as `settings` for singletons. */
  readonly touches: readonly (ResourceKey | (string & {}))[];
  /** The success notification: `Service web saved`. Null: none. */
  readonly done: (value: T, variables: V) => string | null;
  /** Whether the caller shows errors itself, as forms do. Default: errors are notified. */
  readonly showsErrors?: boolean;
  /** Whether the notification offers to undo the change. Default: no. */
  readonly canUndo?: boolean;
}

/** Any change. The promise of `mutateAsync` resolves when every worker serves it. */
export function useChange<T, V = void>(
  options: ChangeOptions<T, V>,
): UseMutationResult<ApiResponse<T>, Error, V> {
  const { send, touches, done, showsErrors = false, canUndo = false } = options;
  const refresh = useRefresh();
  const tell = useNotifyDone();
  const knownRevision = useKnownRevision();
  return useMutation({
    mutationFn: send,
    onMutate: knownRevision,
    onSuccess: async (answer, variables, known) => {
      const text = done(answer.value, variables);
      const { revision } = answer;
      const isNew = canUndo && revision !== null && revision > known;
      if (text !== null) tell(text, answer, isNew ? [revision] : []);
      await refresh(touches);
    },
    onError: (error) => {
      if (!showsErrors) notifyError(error);
    },
  });
}

/** Creates without an id, else patches with the ETag of the read. */
export interface Saving<K extends ResourceKey> {
  readonly id: string | null;
  readonly body: Write<K> | Readonly<Record<string, unknown>>;
  readonly etag?: string | null;
  /** Query of the request, such as `{ adopt: 1 }`. */
  readonly query?: SendOptions["query"];
}

/** Creates or patches an object of a resource. The form handles errors. */
export function useSave<K extends ResourceKey>(
  resource: K,
): UseMutationResult<ApiResponse<Read<K>>, Error, Saving<K>> {
  const connection = useConnection();
  return useChange<Read<K>, Saving<K>>({
    send: ({ id, body, etag = null, query = {} }) =>
      id === null
        ? connection.send(`/${resource}`, { method: "POST", body, query })
        : connection.send(`/${resource}/${encodeURIComponent(id)}`, {
            method: "PATCH",
            body,
            query,
            ifMatch: etag,
          }),
    touches: [resource],
    done: (value, { id }) =>
      `${capitalised(resources[resource].word)} ${nameOf(value)} ${id === null ? "created" : "saved"}`,
    showsErrors: true,
  });
}

/** Refetches the touched resources and their dependents. */
export function useRefresh(): (touched: readonly string[]) => Promise<void> {
  const client = useQueryClient();
  return async (touched) => {
    const keys = new Set(touched.flatMap((key) => [key, ...dependents(key)]));
    const all = [...keys].map((key) => client.invalidateQueries({ queryKey: [key] }));
    await Promise.all([...all, client.invalidateQueries({ queryKey: queryKeys.status })]);
  };
}

/** Resources to refetch with this one. */
export const dependents = (key: string): readonly ResourceKey[] =>
  Object.hasOwn(resources, key) ? resources[key as ResourceKey].touches : [];

/** The last known revision before a change: a response with the same one has changed nothing, and there is nothing to undo. */
export function useKnownRevision(): () => number {
  const client = useQueryClient();
  return () => client.getQueryData<Schemas["Status"]>(queryKeys.status)?.revision ?? 0;
}

/** Undoes revisions, the newest first; the gateway refuses it when the same objects have changed since. */
export function useUndo(): (revisions: readonly number[]) => Promise<void> {
  const connection = useConnection();
  const client = useQueryClient();
  return async (revisions) => {
    try {
      for (const revision of revisions.toReversed())
        await connection.send(`/revisions/${revision}/undo`, { method: "POST" });
      notifications.show({ color: "teal", title: "Undone", message: "" });
    } catch (error) {
      notifyError(error);
    } finally {
      await client.invalidateQueries();
    }
  };
}

/** Long enough to notice a mistake. */
const LONG_MS = 12_000;

/** `Service web saved` and below it `Live on 2 workers, revision 41`; in a fleet `Live on 3 of 3 nodes, revision 41`. */
export function useNotifyDone(): (
  text: string,
  answer: Pick<ApiResponse<unknown>, "revision" | "warning" | "nodes">,
  /** Revisions that the notification offers to undo. */
  undoable?: readonly number[],
) => void {
  const client = useQueryClient();
  const undo = useUndo();
  return (text, { revision, warning, nodes }, undoable = []) => {
    const workers = client.getQueryData<Schemas["Status"]>(queryKeys.status)?.workers;
    const live =
      revision === null ? "" : `Live on ${placeOf(nodes, workers)}, revision ${revision}`;
    const missing = nodes === null || nodes.missing === "" ? "" : `Not live on ${nodes.missing}`;
    const message = [live, missing, warning ?? ""].filter((part) => part !== "").join(". ");
    const id = `${text} ${revision}`;
    const run = () => {
      notifications.hide(id);
      void undo(undoable);
    };
    notifications.show({
      id,
      color: warning === null && missing === "" ? "teal" : "yellow",
      title: text,
      message: undoable.length === 0 ? message : <Undoable message={message} onUndo={run} />,
      ...(missing === "" && undoable.length === 0 ? {} : { autoClose: LONG_MS }),
    });
  };
}

interface UndoableProps {
  readonly message: string;
  readonly onUndo: () => void;
}

function Undoable({ message, onUndo }: UndoableProps) {
  return (
    <>
      <Text size="sm">{message}</Text>
      <Button size="compact-sm" variant="light" mt={6} onClick={onUndo}>
        Undo
      </Button>
    </>
  );
}

function placeOf(nodes: LiveNodes | null, workers: number | undefined): string {
  if (nodes !== null && nodes.all === "?") return "this node; the others are unknown";
  if (nodes !== null) return `${nodes.live} of ${nodes.all} nodes`;
  if (workers === undefined) return "all workers";
  return `${workers} ${workers === 1 ? "worker" : "workers"}`;
}

/** An error that no form shows. */
export function notifyError(error: unknown): void {
  const id = error instanceof ApiError && error.status >= 500 ? error.requestId : null;
  notifications.show({
    color: "red",
    title: "Request failed",
    message: id === null ? toMessage(error) : `${toMessage(error)} (request ${id})`,
    autoClose: LONG_MS,
  });
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Options of a dry run: `connection.send(path, { method: "POST", body, ...dryRun })`. */
export const dryRun: Pick<SendOptions, "query"> = { query: { dry_run: 1 } };
