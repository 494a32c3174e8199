// The live tail of requests; puts the parts of the page together.
import { Button, Stack } from "@mantine/core";
import { type PointerEvent, useCallback, useState } from "react";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { MissingNodes, NodeChoice } from "../../parts/node-choice.tsx";
import { PageHead } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { RequestDrawer } from "./request-drawer.tsx";
import { RequestFilterBar, useRequestFilters } from "./request-filters.tsx";
import { RequestRows } from "./request-rows.tsx";
import { type Hold, TailState } from "./tail-state.tsx";
import { type Tail, useTail } from "./use-tail.ts";

export default function RequestsPage() {
  const { filters, set, clear } = useRequestFilters();
  const [isPaused, setPaused] = useState(false);
  const [isPointedAt, setPointedAt] = useState(false);
  const [open, setOpen] = useUrlState("open");
  // Moving rows cannot be clicked.
  const hold: Hold = isPaused ? "paused" : isPointedAt || open !== "" ? "pointed" : "none";
  const tail = useTail(filters, hold !== "none");
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHead
        title="Requests"
        text="Recent requests with their outcome, live."
        actions={<NodeChoice />}
      />
      <MissingNodes missing={tail.missing} />
      <Stack gap="sm">
        <RequestFilterBar filters={filters} set={set} clear={clear} error={tail.error} />
        {tail.error === null && <TailState tail={tail} hold={hold} onPause={setPaused} />}
        <Body
          tail={tail}
          onOpen={setOpen}
          onPointedAt={setPointedAt}
          onClear={isFiltered ? clear : null}
        />
      </Stack>
      <RequestDrawer
        id={open}
        known={tail.view.rows.find(({ id }) => id === open) ?? null}
        onClose={() => setOpen("")}
      />
    </>
  );
}

interface BodyProps {
  readonly tail: Tail;
  readonly onOpen: (id: string) => void;
  readonly onPointedAt: (isPointedAt: boolean) => void;
  /** Null: no filters. */
  readonly onClear: (() => void) | null;
}

function Body({ tail, onOpen, onPointedAt, onClear }: BodyProps) {
  const hasRows = tail.view.rows.length > 0;
  const point = useCallback(
    (isOver: boolean) => (event: PointerEvent) => {
      // Touch input has no hover, and an empty list does not move.
      if (event.pointerType === "mouse") onPointedAt(isOver && hasRows);
    },
    [onPointedAt, hasRows],
  );
  if (tail.error !== null)
    return <ErrorPanel error={tail.error} title="Requests cannot be loaded" onRetry={tail.retry} />;
  if (tail.isPending && !hasRows) return <RowsSkeleton />;
  return (
    <div onPointerEnter={point(true)} onPointerLeave={point(false)}>
      {hasRows ? (
        <RequestRows rows={tail.view.rows} onOpen={onOpen} />
      ) : (
        <NothingYet onClear={onClear} />
      )}
    </div>
  );
}

function NothingYet({ onClear }: Pick<BodyProps, "onClear">) {
  if (onClear !== null)
    return (
      <EmptyState
        title="No matches"
        text="No stored request matches the filters. New requests appear here when they end."
      >
        <Button variant="default" onClick={onClear}>
          Show all
        </Button>
      </EmptyState>
    );
  return (
    <EmptyState
      title="No requests yet"
      text="Send a request to one of your domains; it appears here within a second with route, timing and outcome."
    />
  );
}
