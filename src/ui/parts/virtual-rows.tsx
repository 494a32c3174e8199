// Draws only those rows of a long list that are in the window; knows nothing of what a row shows.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  memo,
  type ReactNode,
  type Ref,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

/** To be spread on the `<tr>` of a row: where it is. */
export interface RowPlace {
  readonly ref?: Ref<HTMLTableRowElement>;
  readonly style?: CSSProperties;
  readonly "data-index"?: number;
}

interface Props<T> {
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Pixels of a row that has not been drawn yet. */
  readonly estimate: number;
  /** A row with a key. */
  readonly children: (row: T, index: number, place: RowPlace) => ReactNode;
}

/** Few rows are drawn all, so that the browser's own search finds them. */
const MAX_PLAIN = 60;

/** The `<tbody>` of a list. */
export function VirtualRows<T>(props: Props<T>) {
  const { rows, children } = props;
  if (rows.length > MAX_PLAIN) return <Windowed {...props} />;
  return <tbody>{rows.map((row, index) => children(row, index, {}))}</tbody>;
}

function Windowed<T>({ rows, keyOf, estimate, children }: Props<T>) {
  const list = useRef<HTMLTableSectionElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const top = list.current?.getBoundingClientRect().top ?? 0;
    setMargin(top + window.scrollY);
  }, []);
  const virtualizer = useWindowVirtualizer<HTMLTableRowElement>({
    count: rows.length,
    estimateSize: () => estimate,
    overscan: 6,
    // Drawing at once at every scroll event would hold up the next one.
    useFlushSync: false,
    scrollMargin: margin,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
  });
  return (
    <tbody ref={list} style={{ height: virtualizer.getTotalSize(), position: "relative" }}>
      {virtualizer.getVirtualItems().map((item) => (
        <Placed
          key={item.key}
          row={rows[item.index]}
          index={item.index}
          start={item.start - margin}
          measure={virtualizer.measureElement}
          draw={children as Draw}
        />
      ))}
    </tbody>
  );
}

type Draw = (row: unknown, index: number, place: RowPlace) => ReactNode;

interface PlacedProps {
  readonly row: unknown;
  readonly index: number;
  readonly start: number;
  readonly measure: (element: HTMLTableRowElement | null) => void;
  readonly draw: Draw;
}

/** While somebody scrolls, rows that stay in the window are not drawn again. */
const Placed = memo(({ row, index, start, measure, draw }: PlacedProps) =>
  row === undefined
    ? null
    : draw(row, index, {
        ref: measure,
        style: {
          ...{ position: "absolute", insetInline: 0, top: 0 },
          transform: `translateY(${start}px)`,
        },
        "data-index": index,
      }),
);
