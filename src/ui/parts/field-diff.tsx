// The old and new value of fields, side by side on wide screens, else stacked; knows no object.
import { Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type DiffLine, diffLines, type Gap, linesOf, withGaps } from "./line-diff.ts";

export interface FieldChange {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

interface Props {
  readonly fields: readonly FieldChange[];
  /** Added and removed objects have one side only. */
  readonly sides: "both" | "after" | "before";
  /** Always stacked, as in a drawer. */
  readonly isNarrow?: boolean;
}

/** One block per field. */
export function FieldDiff({ fields, sides, isNarrow = false }: Props) {
  const isWindowWide = useMediaQuery("(min-width: 62em)", undefined, {
    getInitialValueInEffect: false,
  });
  const isWide = isWindowWide && !isNarrow;
  return (
    <dl className={isNarrow ? "diff is-narrow" : "diff"}>
      {fields.map(({ path, before, after }) => (
        <div key={path} className={sides === "both" ? "diff-field" : "diff-field is-single"}>
          <dt className="mono">{path}</dt>
          {sides !== "both" ? (
            <Whole value={sides === "after" ? after : before} kind={sideKinds[sides]} />
          ) : isWide ? (
            <SideBySide before={before} after={after} />
          ) : (
            <Unified before={before} after={after} />
          )}
        </div>
      ))}
    </dl>
  );
}

const sideKinds = { after: "added", before: "removed" } as const;

interface Pair {
  readonly before: unknown;
  readonly after: unknown;
}

function SideBySide({ before, after }: Pair) {
  const lines = withGaps(diffLines(linesOf(before), linesOf(after)));
  return (
    <>
      <dd className="diff-side">
        <span className="visually-hidden">Before: </span>
        {isEmpty(before) ? (
          <Nothing value={before} />
        ) : (
          <Lines lines={lines.filter(({ kind }) => kind !== "added")} />
        )}
      </dd>
      <dd className="diff-side">
        <span className="visually-hidden">After: </span>
        {isEmpty(after) ? (
          <Nothing value={after} />
        ) : (
          <Lines lines={lines.filter(({ kind }) => kind !== "removed")} />
        )}
      </dd>
    </>
  );
}

function Unified({ before, after }: Pair) {
  return (
    <dd className="diff-side">
      {isEmpty(before) && <Nothing value={before} kind="removed" />}
      <Lines lines={withGaps(diffLines(textLines(before), textLines(after)))} />
      {isEmpty(after) && <Nothing value={after} kind="added" />}
    </dd>
  );
}

function Whole({ value, kind }: { readonly value: unknown; readonly kind: "added" | "removed" }) {
  return (
    <dd className="diff-side">
      {isEmpty(value) ? (
        <Nothing value={value} />
      ) : (
        <Lines lines={linesOf(value).map((text) => ({ kind, text }))} />
      )}
    </dd>
  );
}

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === "";
const textLines = (value: unknown): readonly string[] => (isEmpty(value) ? [] : linesOf(value));

function Nothing({
  value,
  kind,
}: {
  readonly value: unknown;
  readonly kind?: "added" | "removed";
}) {
  return (
    <span className={kind === undefined ? "diff-line" : `diff-line is-${kind}`}>
      <Text span size="xs" c="dimmed" fs="italic">
        {value === "" ? "empty" : "not set"}
      </Text>
    </span>
  );
}

const words = { added: "added: ", removed: "removed: ", same: "" };

function Lines({ lines }: { readonly lines: readonly (DiffLine | Gap)[] }) {
  return lines.map((line, index) =>
    line.kind === "gap" ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: lines have no names, and never move
      <span key={index} className="diff-line is-gap">
        {line.lines} {line.lines === 1 ? "line" : "lines"} unchanged
      </span>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: lines have no names, and never move
      <span key={index} className={`diff-line mono is-${line.kind}`}>
        <span className="visually-hidden">{words[line.kind]}</span>
        {line.text === "" ? " " : line.text}
      </span>
    ),
  );
}
