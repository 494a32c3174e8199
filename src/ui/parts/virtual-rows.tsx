// Renders only the visible rows of a long list; knows no row content.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  memo,
  type ReactNode,
  type Ref,
  useCallback,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

/** Props for the `<tr>` of a row: its position. */
export interface RowPosition {
  readonly ref?: Ref<HTMLTableRowElement>;
  readonly "data-index"?: number;
}

interface Props<T> {
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Estimated height of an unrendered row, in pixels. */
  readonly estimate: number;
  /** A row with a key. */
  readonly children: (row: T, index: number, position: RowPosition) => ReactNode;
}

/** Up to this many rows are all rendered, so that the browser's search finds them. */
const MAX_PLAIN = 100;

/** The `<tbody>` of a list. */
export function VirtualRows<T>(props: Props<T>) {
  const { rows, children } = props;
  if (rows.length > MAX_PLAIN) return <Windowed {...props} />;
  return <tbody>{rows.map((row, index) => children(row, index, {}))}</tbody>;
}

function Windowed<T>({ rows, keyOf, estimate, children }: Props<T>) {
  const list = useRef<HTMLTableSectionElement>(null);
  const [{ margin, height }, setMeasures] = useState({ margin: 0, height: estimate });
  useLayoutEffect(() => {
    const top = list.current?.getBoundingClientRect().top ?? 0;
    // A wrong estimate would move every row of the window again when it is measured.
    const first = list.current?.rows[0]?.offsetHeight ?? estimate;
    setMeasures({ margin: top + window.scrollY, height: first });
  }, [estimate]);
  // Another function would make the list compute the place of every row anew.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key of a row depends on nothing else
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
    [rows],
  );
  const virtualizer = useWindowVirtualizer<HTMLTableRowElement>({
    count: rows.length,
    estimateSize: () => height,
    overscan: 4,
    // A synchronous render per scroll event would delay the next one.
    useFlushSync: false,
    scrollMargin: margin,
    getItemKey,
  });
  const items = virtualizer.getVirtualItems();
  const above = (items[0]?.start ?? margin) - margin;
  const below = virtualizer.getTotalSize() + margin - (items.at(-1)?.end ?? margin);
  return (
    <tbody ref={list} style={{ paddingTop: above, paddingBottom: below, overflowAnchor: "none" }}>
      {items.map((item) => (
        <Placed
          key={item.key}
          row={rows[item.index]}
          index={item.index}
          measure={virtualizer.measureElement}
          draw={children as Draw}
        />
      ))}
    </tbody>
  );
}

type Draw = (row: unknown, index: number, position: RowPosition) => ReactNode;

interface PlacedProps {
  readonly row: unknown;
  readonly index: number;
  readonly measure: (element: HTMLTableRowElement | null) => void;
  readonly draw: Draw;
}

/** While scrolling, visible rows do not render again. */
const Placed = memo(({ row, index, measure, draw }: PlacedProps) =>
  row === undefined ? null : draw(row, index, { ref: measure, "data-index": index }),
);
