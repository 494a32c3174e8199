// The palette: a search over pages, actions and objects, by keyboard alone; sends only reads.
import { Loader, Modal, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { type KeyboardEvent, useContext, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { useConnection } from "../api/connection-context.ts";
import { ReadOnlyContext, useRole } from "../api/queries.ts";
import {
  bestFirst,
  fixedEntries,
  objectEntries,
  type PaletteEntry,
  searchable,
} from "./palette-entries.ts";

const LIST_ID = "palette-list";
const optionId = (index: number) => `palette-${index}`;

interface DialogProps {
  readonly query: string;
  readonly onQuery: (query: string) => void;
  readonly onClose: () => void;
}

export default function PaletteDialog({ query, onQuery, onClose }: DialogProps) {
  const [active, setActive] = useState(0);
  const [, navigate] = useLocation();
  const { entries, isBusy } = useEntries(query);
  const open = (entry: PaletteEntry | undefined) => {
    if (entry === undefined) return;
    onClose();
    navigate(entry.href);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setActive((active + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter") open(entries[active]);
  };
  useEffect(() => {
    document.getElementById(optionId(active))?.scrollIntoView({ block: "nearest" });
  }, [active]);
  return (
    <Modal.Root opened onClose={onClose}>
      <Modal.Overlay />
      <Modal.Content aria-label="Search everything">
        <Modal.Body>
          <TextInput
            data-autofocus
            role="combobox"
            aria-label="Search pages, objects and actions"
            aria-expanded
            aria-controls={LIST_ID}
            aria-activedescendant={entries.length === 0 ? undefined : optionId(active)}
            placeholder="Page, object, action or URL"
            leftSection={<IconSearch size={16} />}
            rightSection={isBusy && <Loader size="xs" />}
            value={query}
            onChange={(event) => {
              onQuery(event.currentTarget.value);
              setActive(0);
            }}
            onKeyDown={onKey}
          />
          {entries.length === 0 ? (
            <Text size="sm" c="dimmed" p="sm" role="status">
              {isBusy ? "Searching" : "No matches"}
            </Text>
          ) : (
            <Options entries={entries} active={active} onOpen={open} />
          )}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

interface OptionsProps {
  readonly entries: readonly PaletteEntry[];
  readonly active: number;
  readonly onOpen: (entry: PaletteEntry) => void;
}

function Options({ entries, active, onOpen }: OptionsProps) {
  return (
    <div id={LIST_ID} role="listbox" aria-label="Results" className="palette-list">
      {entries.map((entry, index) => (
        // The input has the focus, and its keys choose.
        // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the input names the active option
        <div
          key={entry.href + entry.label}
          id={optionId(index)}
          role="option"
          aria-selected={index === active}
          className="palette-option"
          onClick={() => onOpen(entry)}
        >
          <span>{entry.label}</span> <span className="is-minor">{entry.hint}</span>
        </div>
      ))}
    </div>
  );
}

/** A shorter query would find most objects. */
const MIN_LETTERS = 2;

function useEntries(query: string) {
  const role = useRole();
  const isReadOnly = useContext(ReadOnlyContext);
  const connection = useConnection();
  const [asked] = useDebouncedValue(query.trim(), 150);
  const isSearching = asked.length >= MIN_LETTERS;
  const results = useQueries({
    queries: searchable(role).map((resource) => ({
      queryKey: [resource, "palette", asked],
      enabled: isSearching,
      placeholderData: keepPreviousData,
      queryFn: async ({ signal }: { readonly signal: AbortSignal }) => {
        const { value } = await connection.send<readonly { readonly id: string }[]>(
          `/${resource}`,
          { query: { q: asked }, signal },
        );
        return objectEntries(resource, value, asked);
      },
    })),
  });
  const found = results.flatMap(({ data }) => data ?? []);
  const objects = isSearching ? bestFirst(found, asked) : [];
  return {
    entries: [...fixedEntries(query, { role, isReadOnly }), ...objects],
    isBusy: isSearching && results.some(({ isFetching }) => isFetching),
  };
}
