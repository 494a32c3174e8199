// Draws only those rows of a long list that are in the window; knows nothing of what a row shows.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

interface Props<T> {
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Pixels of a row that has not been drawn yet. */
  readonly estimate: number;
  readonly children: (row: T, index: number) => ReactNode;
}

/** Few rows are drawn all, so that the browser's own search finds them. */
const MAX_PLAIN = 60;

export function VirtualRows<T>(props: Props<T>) {
  const { rows, keyOf, children } = props;
  if (rows.length > MAX_PLAIN) return <Windowed {...props} />;
  return (
    <div role="rowgroup">
      {rows.map((row, index) => (
        <div key={keyOf(row)} role="presentation">
          {children(row, index)}
        </div>
      ))}
    </div>
  );
}

function Windowed<T>({ rows, keyOf, estimate, children }: Props<T>) {
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const top = list.current?.getBoundingClientRect().top ?? 0;
    setMargin(top + window.scrollY);
  }, []);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => estimate,
    overscan: 8,
    scrollMargin: margin,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
  });
  return (
    <div
      ref={list}
      role="rowgroup"
      style={{ height: virtualizer.getTotalSize(), position: "relative" }}
    >
      {virtualizer.getVirtualItems().map((item) => {
        const row = rows[item.index];
        if (row === undefined) return null;
        return (
          <div
            key={item.key}
            role="presentation"
            ref={virtualizer.measureElement}
            data-index={item.index}
            style={{
              position: "absolute",
              insetInline: 0,
              top: 0,
              transform: `translateY(${item.start - margin}px)`,
            }}
          >
            {children(row, item.index)}
          </div>
        );
      })}
    </div>
  );
}
