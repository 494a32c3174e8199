// The search input of a page; the key / focuses it. Knows no list.
import { CloseButton, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useRef } from "react";
import { useShortcut } from "./shortcut.ts";

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function SearchField({ label, value, onChange }: Props) {
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", () => field.current?.focus());
  return (
    <TextInput
      ref={field}
      type="search"
      aria-label={label}
      placeholder="Search"
      leftSection={<IconSearch size={16} />}
      rightSection={
        value !== "" && (
          <CloseButton size="sm" aria-label="Clear the search" onClick={() => onChange("")} />
        )
      }
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
      }}
      style={{ flex: "1 1 12rem", maxWidth: "24rem" }}
    />
  );
}
