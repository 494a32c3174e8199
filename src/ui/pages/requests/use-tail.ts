// Follows the request stream and updates the page a few times per second at most; renders nothing.
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useStream } from "../../api/live.tsx";
import { queryKeys, useRead } from "../../api/queries.ts";
import { type Missing, useNodeQuery } from "../../parts/node-choice.tsx";
import {
  MAX_ROWS,
  type RequestList,
  type RequestRow,
  RequestTail,
  rowsOf,
  type TailView,
} from "./request-tail.ts";

/** Query parameters of the list and of the stream. */
export type RequestFilters = Readonly<Record<string, string>>;

export interface Tail {
  readonly view: TailView;
  /** Whether the stream is connected. */
  readonly isOpen: boolean;
  readonly isPending: boolean;
  /** The error of the list, for example an invalid filter. */
  readonly error: Error | null;
  readonly retry: () => void;
  /** Nodes of the fleet whose requests are missing. */
  readonly missing: Missing;
}

/** Milliseconds between two renders. */
const DRAW_MS = 250;

/** While held, the rows stay unchanged. */
export function useTail(chosen: RequestFilters, isHeld: boolean): Tail {
  const filters = { ...chosen, ...useNodeQuery() };
  const words = new URLSearchParams(filters).toString();
  const query = { ...filters, limit: MAX_ROWS };
  const list = useRead<RequestList>("requests", { query });
  const [missing, setMissing] = useState<Missing>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other filters begin a new one
  const tail = useMemo(() => new RequestTail(), [words]);
  const { view, draw, drawSoon } = useDrawing(tail, isHeld);
  const loaded = list.data?.value;
  useEffect(() => {
    if (loaded === undefined) return;
    tail.merge(rowsOf(loaded));
    setMissing("items" in loaded ? loaded.missing : []);
    draw();
  }, [tail, loaded, draw]);
  const isOpen = useStream(`/api/v1/requests/stream${words === "" ? "" : `?${words}`}`, {
    kinds: ["request", "dropped", "nodes"],
    // An invalid filter would be requested again and again.
    isOn: loaded !== undefined,
    onEvent: (kind, data) => {
      if (kind === "nodes") setMissing((data as { readonly missing: Missing }).missing);
      else if (kind === "dropped") tail.drop((data as { readonly count: number }).count);
      else tail.push(data as RequestRow, performance.now());
      drawSoon();
    },
  });
  const client = useQueryClient();
  const key = useRef(queryKeys.of("requests", query));
  key.current = queryKeys.of("requests", query);
  useEffect(() => {
    // Requests that ended before the stream was open, or while it was closed.
    if (isOpen) void client.invalidateQueries({ queryKey: key.current });
  }, [client, isOpen]);
  return {
    view,
    isOpen,
    isPending: list.isPending,
    error: loaded === undefined ? list.error : null,
    retry: () => void list.refetch(),
    missing,
  };
}

function useDrawing(tail: RequestTail, isHeld: boolean) {
  const held = useRef(isHeld);
  held.current = isHeld;
  const [drawn, setDrawn] = useState(() => ({ tail, view: tail.view(0, false) }));
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const draw = useCallback(() => {
    setDrawn({ tail, view: tail.view(performance.now(), held.current) });
  }, [tail]);
  const drawSoon = useCallback(() => {
    timer.current ??= setTimeout(() => {
      // On an animation frame: a hidden page renders nothing.
      requestAnimationFrame(() => {
        timer.current = null;
        draw();
      });
    }, DRAW_MS);
  }, [draw]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: buffered rows are shown when the tail resumes
  useEffect(draw, [draw, isHeld]);
  useEffect(() => {
    // The rate decreases without new requests.
    const clock = setInterval(draw, 1000);
    return () => {
      clearInterval(clock);
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    };
  }, [draw]);
  // New filters, not rendered yet.
  const view = drawn.tail === tail ? drawn.view : tail.view(performance.now(), isHeld);
  return { view, draw, drawSoon };
}
