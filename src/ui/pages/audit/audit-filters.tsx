// The filters of the audit log: text, actor, action, object, result and time, stored in the page URL.
import { Autocomplete, Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMemo } from "react";
import type { Schemas } from "../../api/resources.ts";
import { wordOf } from "../../parts/object-page.ts";
import { SearchField } from "../../parts/search-field.tsx";
import { verbOf } from "./audit-rows.tsx";
import { useUrlState } from "../../parts/url-state.ts";

type Entry = Schemas["AuditEntry"];

const spans = [
  { value: "1h", label: "Last hour", ms: 3_600_000 },
  { value: "24h", label: "Last 24 hours", ms: 86_400_000 },
  { value: "7d", label: "Last 7 days", ms: 604_800_000 },
  { value: "30d", label: "Last 30 days", ms: 2_592_000_000 },
] as const;

const results = [
  { value: "ok", label: "Done" },
  { value: "refused", label: "Refused" },
  { value: "failed", label: "Failed" },
];

export interface AuditFilter {
  readonly values: Readonly<Record<Name, string>>;
  readonly set: (name: Name, value: string) => void;
  /** Query parameters of the API. */
  readonly query: Readonly<Record<string, string>>;
  readonly isSet: boolean;
  readonly clear: () => void;
}

const names = [
  "q",
  "actor",
  "action",
  "kind",
  "result",
  "span",
  "since",
  "until",
  "object",
] as const;
type Name = (typeof names)[number];

/** Filters from the address. */
export function useAuditFilter(): AuditFilter {
  const states = {
    q: useUrlState("q"),
    actor: useUrlState("actor"),
    action: useUrlState("action"),
    kind: useUrlState("kind"),
    result: useUrlState("result"),
    span: useUrlState("span"),
    since: useUrlState("since"),
    until: useUrlState("until"),
    object: useUrlState("object"),
  };
  const values = Object.fromEntries(names.map((name) => [name, states[name][0]])) as Record<
    Name,
    string
  >;
  // Debounced: one request per pause in typing.
  const [key] = useDebouncedValue(JSON.stringify(values), 250);
  // A span is relative to the time of its selection; otherwise every render would change the query.
  const query = useMemo(() => toQuery(JSON.parse(key) as Record<Name, string>), [key]);
  return {
    values,
    query,
    set: (name, value) => states[name][1](value),
    isSet: names.some((name) => values[name] !== ""),
    clear: () => {
      for (const name of names) states[name][1]("");
    },
  };
}

function toQuery(values: Readonly<Record<Name, string>>): Record<string, string> {
  const { span, since, until, object, ...exact } = values;
  const chosen = spans.find(({ value }) => value === span);
  const isOwn = span === "own";
  const query: Record<string, string> = {
    ...exact,
    object_id: object,
    since:
      chosen !== undefined
        ? new Date(Date.now() - chosen.ms).toISOString()
        : isOwn
          ? toTime(since)
          : "",
    until: isOwn ? toTime(until) : "",
  };
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value.trim() !== ""));
}

/** A datetime input has no zone: its value is in the browser's time zone. */
function toTime(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

interface Props {
  readonly filter: AuditFilter;
  /** Loaded entries, for suggestions. */
  readonly entries: readonly Entry[];
}

export function AuditFilters({ filter, entries }: Props) {
  const { values, set } = filter;
  return (
    <Group gap="xs">
      <SearchField
        label="Search the audit log"
        value={values.q}
        onChange={(value) => set("q", value)}
      />
      <Autocomplete
        aria-label="Who"
        placeholder="Who"
        data={known(entries, "actor")}
        value={values.actor}
        onChange={(value) => set("actor", value)}
        clearable
        w={{ base: "calc(50% - 5px)", sm: 200 }}
      />
      <Choice
        label="Action"
        value={values.action}
        choices={withChosen([...actionChoices, ...known(entries, "action")], values.action).map(
          (value) => ({ value, label: verbOf(value) }),
        )}
        onChange={(value) => set("action", value)}
      />
      <Choice
        label="Object"
        value={values.kind}
        choices={withChosen([...kindChoices, ...known(entries, "kind")], values.kind).map(
          (value) => ({ value, label: wordOf(value) }),
        )}
        onChange={(value) => set("kind", value)}
      />
      <Choice
        label="Result"
        value={values.result}
        choices={results}
        onChange={(value) => set("result", value)}
      />
      <Choice
        label="When"
        value={values.span}
        choices={[...spans.map(({ value, label }) => ({ value, label })), ownSpan]}
        onChange={(value) => set("span", value)}
      />
      {values.span === "own" && <OwnSpan filter={filter} />}
      {values.object !== "" && (
        <Button size="xs" variant="light" onClick={() => set("object", "")}>
          One object only: show all
        </Button>
      )}
    </Group>
  );
}

const ownSpan = { value: "own", label: "From … to …" };
const actionChoices = ["create", "update", "delete", "login", "logout", "export"];
const kindChoices = ["service", "route", "plugin", "consumer", "certificate", "user", "token"];

const known = (entries: readonly Entry[], field: "actor" | "action" | "kind"): string[] =>
  [...new Set(entries.map((entry) => entry[field]))].toSorted();

const withChosen = (values: readonly string[], chosen: string): string[] => [
  ...new Set(chosen === "" ? values : [...values, chosen]),
];

function OwnSpan({ filter: { values, set } }: Pick<Props, "filter">) {
  return (
    <>
      <TextInput
        type="datetime-local"
        aria-label="From"
        value={values.since}
        onChange={(event) => set("since", event.currentTarget.value)}
      />
      <TextInput
        type="datetime-local"
        aria-label="To"
        value={values.until}
        onChange={(event) => set("until", event.currentTarget.value)}
      />
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly (string | { readonly value: string; readonly label: string })[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, value, choices, onChange }: ChoiceProps) {
  return (
    <Select
      aria-label={label}
      placeholder={label}
      data={choices.map((choice) => (typeof choice === "string" ? choice : { ...choice }))}
      value={value === "" ? null : value}
      onChange={(next) => onChange(next ?? "")}
      clearable
      w={{ base: "calc(50% - 5px)", sm: 150 }}
    />
  );
}
