// Subscribes to gateway events and invalidates the affected queries; renders nothing.
import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  useCallback,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { dependents } from "./changes.tsx";
import { follow } from "./event-source.ts";
import { queryKeys } from "./queries.ts";
import { type ResourceKey, resources } from "./resources.ts";

/** Kinds of event that viewers may see; see docs/events.md. */
const eventKinds = [
  "config",
  "health",
  "certificate",
  "acme",
  "listener",
  "worker",
  "overload",
  "node",
] as const;
export type EventKind = (typeof eventKinds)[number] | "reset" | "dropped";
export type EventListener = (kind: EventKind, data: unknown) => void;

interface Live {
  readonly isConnected: boolean;
  subscribe(listener: EventListener): () => void;
}

const LiveContext = createContext<Live | null>(null);

/** Opens the event stream of the page, for `useEvents` and `useLive`. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const [isConnected, setConnected] = useState(false);
  const listeners = useRef(new Set<EventListener>());
  const invalidate = useInvalidation();
  const client = useQueryClient();
  const askWho = useCallback(
    () =>
      void client.invalidateQueries(
        { queryKey: queryKeys.me, exact: true },
        { cancelRefetch: false },
      ),
    [client],
  );
  useEffect(
    () =>
      follow(`/api/v1/events?kinds=${eventKinds.join(",")}`, [...eventKinds, "reset", "dropped"], {
        resumes: true,
        onState: (isOpen) => {
          setConnected(isOpen);
          // The session may have ended: check now rather than on the next save.
          if (!isOpen) askWho();
        },
        onEvent: (kind, data) => {
          invalidate(kind as EventKind, data);
          for (const listener of listeners.current) listener(kind as EventKind, data);
        },
      }),
    [invalidate, askWho],
  );
  const live = useMemo<Live>(
    () => ({
      isConnected,
      subscribe(listener) {
        listeners.current.add(listener);
        return () => listeners.current.delete(listener);
      },
    }),
    [isConnected],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

function useInvalidation(): (kind: EventKind, data: unknown) => void {
  const client = useQueryClient();
  return useMemo(() => {
    const pending = new Set<string>();
    const state: { timer?: ReturnType<typeof setTimeout> | undefined } = {};
    // Changes come in bursts: debounce the refetch.
    const flush = () => {
      state.timer = undefined;
      const keys = [...pending];
      pending.clear();
      if (keys.includes("")) void client.invalidateQueries();
      else for (const key of keys) void client.invalidateQueries({ queryKey: [key] });
    };
    return (kind, data) => {
      for (const key of touchedBy(kind, data)) pending.add(key);
      state.timer ??= setTimeout(flush, 300);
    };
  }, [client]);
}

/** First parts of query keys; the empty one matches all queries. */
function touchedBy(kind: EventKind, data: unknown): readonly string[] {
  switch (kind) {
    case "reset":
    case "dropped":
      return [""];
    case "health":
      return ["targets", "services"];
    case "certificate":
    case "acme":
      return ["certificates", "acme/accounts", "applications"];
    case "listener":
      return ["listeners"];
    case "worker":
    case "overload":
      return queryKeys.status;
    case "node":
      return [...queryKeys.status, "nodes"];
    case "config":
      return [...queryKeys.status, "revisions", "audit", ...touchedByChange(data)];
    default:
      return kind satisfies never;
  }
}

function touchedByChange(data: unknown): readonly string[] {
  const { changes, more } = data as { changes: readonly { kind: string }[]; more: number };
  if (more > 0) return [""];
  return changes.flatMap(({ kind }) => {
    const found = keyByKind.get(kind);
    return found === undefined ? [kind] : [found, ...dependents(found)];
  });
}

const keyByKind = new Map(
  (Object.keys(resources) as ResourceKey[]).map((key) => [resources[key].kind, key]),
);

/** Calls `listener` for each event of the given kinds while the component is mounted. */
export function useEvents(
  kinds: readonly EventKind[],
  listener: (data: unknown, kind: EventKind) => void,
): void {
  const live = useContext(LiveContext);
  const latest = useRef(listener);
  latest.current = listener;
  const wanted = kinds.join();
  useEffect(
    () =>
      live?.subscribe((kind, data) => {
        if (wanted.split(",").includes(kind)) latest.current(data, kind);
      }),
    [live, wanted],
  );
}

/** Whether the event stream is connected. */
export function useLive(): boolean {
  return useContext(LiveContext)?.isConnected ?? false;
}

export interface StreamOptions {
  /** Names of events, such as `request`. */
  readonly kinds: readonly string[];
  readonly onEvent: (kind: string, data: unknown) => void;
  /** False: disconnected, such as while a live tail is paused. Default: true. */
  readonly isOn?: boolean;
}

/** Subscribes to another stream, such as `/api/v1/requests/stream?host=…`. Returns whether it is connected. */
export function useStream(url: string, { kinds, onEvent, isOn = true }: StreamOptions): boolean {
  const [isOpen, setOpen] = useState(false);
  const latest = useRef(onEvent);
  latest.current = onEvent;
  const wanted = kinds.join();
  useEffect(() => {
    if (!isOn) return;
    const stop = follow(url, wanted.split(","), {
      onState: setOpen,
      onEvent: (kind, data) => latest.current(kind, data),
    });
    return () => {
      stop();
      setOpen(false);
    };
  }, [url, wanted, isOn]);
  return isOpen;
}
