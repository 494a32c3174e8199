// Search, tags, states and bulk actions above a list; knows no resource by name.
import { Button, CloseButton, Group, Select, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useDeferredValue, useMemo, useRef, useState } from "react";
import { type BulkAction, useBulk } from "../api/bulk.ts";
import { notifyError } from "../api/changes.tsx";
import { nameOf, type ResourceKey, resources } from "../api/resources.ts";
import { type PendingDelete, toPendingDelete } from "./confirm-delete.tsx";
import { allTags, hasWords, haystackOf, tagsOf } from "./list-filter.ts";
import { Can } from "./page-layout.tsx";
import { useShortcut } from "./shortcut.ts";
import { useUrlState } from "./url-state.ts";

interface Filterable<T> {
  readonly states?: readonly { value: string; label: string; fits: (row: T) => boolean }[];
  readonly searchText?: (row: T) => string;
}

export interface ListFilter<T> {
  readonly rows: readonly T[];
  readonly query: string;
  readonly setQuery: (value: string) => void;
  readonly tag: string;
  readonly setTag: (value: string) => void;
  readonly tags: readonly string[];
  readonly state: string;
  readonly setState: (value: string) => void;
  readonly states: readonly { readonly value: string; readonly label: string }[];
  readonly clear: () => void;
}

/** Rows that match the URL parameters `?q=`, `?tag=`, `?state=`. */
export function useListFilter<T extends object>(
  all: readonly T[],
  { states = [], searchText }: Filterable<T>,
): ListFilter<T> {
  const [query, setQuery] = useUrlState("q");
  const [tag, setTag] = useUrlState("tag");
  const [state, setState] = useUrlState("state");
  // Typing must not wait for the filter of thousands of rows.
  const asked = useDeferredValue(query);
  const haystacks = useMemo(
    () =>
      new Map(
        all.map((row) => [row, `${haystackOf(row)} ${searchText?.(row).toLowerCase() ?? ""}`]),
      ),
    [all, searchText],
  );
  const choices = [...states, ...(all.some(isSwitchable) ? switchStates : [])];
  const fits = choices.find(({ value }) => value === state)?.fits;
  const rows = all.filter(
    (row) =>
      hasWords(haystacks.get(row) ?? "", asked.trim()) &&
      (tag === "" || tagsOf(row).includes(tag)) &&
      (fits === undefined || fits(row)),
  );
  return {
    rows,
    query,
    setQuery,
    tag,
    setTag,
    state,
    setState,
    states: choices,
    tags: useMemo(() => allTags(all), [all]),
    clear: () => {
      setQuery("");
      setTag("");
      setState("");
    },
  };
}

const isSwitchable = (row: object): boolean => "enabled" in row;
const switchStates = [
  {
    value: "on",
    label: "Enabled",
    fits: (row: object) => "enabled" in row && row.enabled === true,
  },
  {
    value: "off",
    label: "Disabled",
    fits: (row: object) => "enabled" in row && row.enabled === false,
  },
];

interface ToolbarProps<T> {
  readonly resource: ResourceKey;
  readonly filter: ListFilter<T>;
  readonly total: number;
  readonly selected: readonly T[];
  readonly onClear: () => void;
  readonly onDelete: (objects: readonly PendingDelete[]) => void;
}

export function ListToolbar<T extends { readonly id: string }>(props: ToolbarProps<T>) {
  const { resource, filter, total, selected } = props;
  const { word, plural, writes } = resources[resource];
  const search = useRef<HTMLInputElement>(null);
  useShortcut("/", () => search.current?.focus());
  return (
    <Group gap="xs" mih={36}>
      <TextInput
        ref={search}
        type="search"
        aria-label={`Search ${plural}`}
        placeholder="Search"
        leftSection={<IconSearch size={16} />}
        rightSection={
          filter.query !== "" && (
            <CloseButton
              size="sm"
              aria-label="Clear the search"
              onClick={() => filter.setQuery("")}
            />
          )
        }
        value={filter.query}
        onChange={(event) => filter.setQuery(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
        style={{ flex: "1 1 12rem", maxWidth: "24rem" }}
      />
      {filter.tags.length > 0 && (
        <Choice label="Tag" value={filter.tag} values={filter.tags} onChange={filter.setTag} />
      )}
      {filter.states.length > 0 && (
        <Choice
          label="State"
          value={filter.state}
          values={filter.states}
          onChange={filter.setState}
        />
      )}
      <Text size="sm" c="dimmed" aria-live="polite">
        {filter.rows.length === total ? total : `${filter.rows.length} of ${total}`}{" "}
        {total === 1 ? word : plural}
      </Text>
      {selected.length > 0 && (
        <Can needs={writes}>
          <BulkActions {...props} />
        </Can>
      )}
    </Group>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly values: readonly (string | { readonly value: string; readonly label: string })[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, value, values, onChange }: ChoiceProps) {
  return (
    <Select
      aria-label={label}
      placeholder={label}
      data={values.map((item) => (typeof item === "string" ? item : { ...item }))}
      value={value === "" ? null : value}
      onChange={(next) => onChange(next ?? "")}
      clearable
      w={{ base: 130, sm: 150 }}
    />
  );
}

function BulkActions<T extends { readonly id: string }>(props: ToolbarProps<T>) {
  const { resource, selected, onClear, onDelete } = props;
  const bulk = useBulk(resource);
  const [isBusy, setBusy] = useState(false);
  const run = async (action: BulkAction) => {
    setBusy(true);
    const objects = selected.map((row) => ({ id: row.id, name: nameOf(row) }));
    await bulk(objects, action).catch(notifyError);
    setBusy(false);
    onClear();
  };
  return (
    <Group gap={6} role="group" aria-label="With the selected">
      <Text size="sm" fw={600}>
        {selected.length} selected
      </Text>
      {selected.some(isSwitchable) && (
        <Button.Group>
          <Button size="xs" variant="default" loading={isBusy} onClick={() => run("enable")}>
            Enable
          </Button>
          <Button size="xs" variant="default" loading={isBusy} onClick={() => run("disable")}>
            Disable
          </Button>
        </Button.Group>
      )}
      <Button
        size="xs"
        color="red"
        variant="light"
        onClick={() => onDelete(selected.map(toPendingDelete))}
      >
        Delete
      </Button>
      <Button size="xs" variant="subtle" color="gray" onClick={onClear}>
        Clear
      </Button>
    </Group>
  );
}
