// The changes of each object, field by field, with search and filters; knows no resource.
import { Badge, Button, Chip, Group, Select, Stack, Text, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useDeferredValue, useMemo, useState } from "react";
import type { Schemas } from "../api/resources.ts";
import { EmptyState } from "./empty-state.tsx";
import { FieldDiff } from "./field-diff.tsx";
import { hasWords } from "./list-filter.ts";
import { wordOf } from "./object-page.ts";
import { SearchField } from "./search-field.tsx";
import { useUrlState } from "./url-state.ts";

export type ObjectChange = Schemas["Changes"]["changes"][number];

const actionWords = { create: "Added", update: "Changed", delete: "Removed" } as const;
const colors = { create: "teal", update: "blue", delete: "red" } as const;
const actions = ["create", "update", "delete"] as const;

/** Up to this many objects are expanded. */
const MAX_OPEN = 6;
const STEP = 100;

interface Props {
  readonly changes: readonly ObjectChange[];
  /** Text without changes. */
  readonly none: string;
}

/** One block for each object; filters are in the address. */
export function ChangeList({ changes, none }: Props) {
  const filter = useChangeFilter(changes);
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const [areOpen, setAllOpen] = useState(changes.length <= MAX_OPEN);
  const [limit, setLimit] = useState(STEP);
  if (changes.length === 0) return <Text c="dimmed">{none}</Text>;
  const openAll = (isOpen: boolean) => {
    setAllOpen(isOpen);
    setToggled(new Set());
  };
  const toggle = (index: number) =>
    setToggled((before) => {
      const next = new Set(before);
      if (!next.delete(index)) next.add(index);
      return next;
    });
  return (
    <Stack gap="sm">
      {changes.length > 1 && (
        <Toolbar filter={filter} all={changes} areOpen={areOpen} onOpenAll={openAll} />
      )}
      {filter.rows.length === 0 ? (
        <EmptyState title="No matches" text="No change matches the search and the filters.">
          <Button variant="default" onClick={filter.clear}>
            Show all
          </Button>
        </EmptyState>
      ) : (
        <div>
          {filter.rows.slice(0, limit).map(({ change, index }) => (
            <ChangedObject
              key={index}
              change={change}
              isOpen={areOpen !== toggled.has(index)}
              onToggle={() => toggle(index)}
            />
          ))}
        </div>
      )}
      {filter.rows.length > limit && (
        <Button variant="default" onClick={() => setLimit(limit + STEP)}>
          Show {Math.min(STEP, filter.rows.length - limit)} more of {filter.rows.length}
        </Button>
      )}
    </Stack>
  );
}

function useChangeFilter(changes: readonly ObjectChange[]) {
  const [query, setQuery] = useUrlState("q");
  const [action, setAction] = useUrlState("action");
  const [kind, setKind] = useUrlState("kind");
  const asked = useDeferredValue(query);
  const all = useMemo(
    () =>
      changes.map((change, index) => ({
        change,
        index,
        text: `${wordOf(change.kind)} ${change.name ?? ""} ${change.id ?? ""} ${JSON.stringify(change.diff)}`.toLowerCase(),
      })),
    [changes],
  );
  const rows = all.filter(
    ({ change, text }) =>
      (action === "" || change.action === action) &&
      (kind === "" || change.kind === kind) &&
      hasWords(text, asked.trim()),
  );
  const clear = () => {
    setQuery("");
    setAction("");
    setKind("");
  };
  return { rows, query, setQuery, action, setAction, kind, setKind, clear };
}

interface ToolbarProps {
  readonly filter: ReturnType<typeof useChangeFilter>;
  readonly all: readonly ObjectChange[];
  readonly areOpen: boolean;
  readonly onOpenAll: (isOpen: boolean) => void;
}

function Toolbar({ filter, all, areOpen, onOpenAll }: ToolbarProps) {
  const counts = countsOf(all);
  const kinds = [...new Set(all.map(({ kind }) => kind))].toSorted();
  return (
    <Group gap="xs">
      <SearchField label="Search the changes" value={filter.query} onChange={filter.setQuery} />
      {kinds.length > 1 && (
        <Select
          aria-label="Object type"
          placeholder="Type"
          data={kinds.map((value) => ({ value, label: wordOf(value) }))}
          value={filter.kind === "" ? null : filter.kind}
          onChange={(value) => filter.setKind(value ?? "")}
          clearable
          w={150}
        />
      )}
      <Chip.Group value={filter.action} onChange={(value) => filter.setAction(value)}>
        <Group gap={6} role="group" aria-label="Change type">
          <Chip size="xs" value="">
            All {all.length}
          </Chip>
          {actions
            .filter((value) => counts[value] > 0)
            .map((value) => (
              <Chip key={value} size="xs" value={value} color={colors[value]}>
                {actionWords[value]} {counts[value]}
              </Chip>
            ))}
        </Group>
      </Chip.Group>
      <Button size="xs" variant="subtle" onClick={() => onOpenAll(!areOpen)}>
        {areOpen ? "Fold all" : "Unfold all"}
      </Button>
    </Group>
  );
}

export const countsOf = (changes: readonly ObjectChange[]) => {
  const counts = { create: 0, update: 0, delete: 0 };
  for (const { action } of changes) counts[action]++;
  return counts;
};

/** `2 objects added, 1 changed`. */
export function countsInWords(changes: readonly ObjectChange[]): string {
  const counts = countsOf(changes);
  const parts = actions
    .filter((action) => counts[action] > 0)
    .map((action) => `${counts[action]} ${actionWords[action].toLowerCase()}`);
  return parts.length === 0 ? "no changes" : parts.join(", ");
}

interface ObjectProps {
  readonly change: ObjectChange;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function ChangedObject({ change, isOpen, onToggle }: ObjectProps) {
  const { action, kind, name, id, diff } = change;
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <div className="change">
      <UnstyledButton className="change-head" aria-expanded={isOpen} onClick={onToggle}>
        <Chevron size={16} style={{ flexShrink: 0 }} aria-hidden="true" />
        <Badge variant="light" color={colors[action]} tt="none" style={{ flexShrink: 0 }} miw={76}>
          {actionWords[action]}
        </Badge>
        <Text span size="sm" style={{ minWidth: 0, overflowWrap: "anywhere", flex: 1 }}>
          {wordOf(kind)}{" "}
          <Text span fw={600} inherit>
            {name ?? id ?? ""}
          </Text>
        </Text>
        {action === "update" && (
          <Text span size="xs" c="dimmed" style={{ flexShrink: 0 }}>
            {diff.length} {diff.length === 1 ? "field" : "fields"}
          </Text>
        )}
      </UnstyledButton>
      {isOpen && (
        <div className="change-body">
          {diff.length === 0 ? (
            <Text size="xs" c="dimmed">
              Fields are not listed for this many objects.
            </Text>
          ) : (
            <FieldDiff fields={diff} sides={sides[action]} />
          )}
        </div>
      )}
    </div>
  );
}

const sides = { create: "after", update: "both", delete: "before" } as const;
