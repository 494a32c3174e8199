// The expiry of a credential: a preset or an exact time; knows no credential.
import { Select, SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";
import { DAY } from "./credential-kinds.ts";

const choices = [
  { value: "never", label: "Never" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In one year" },
  { value: "exact", label: "Custom" },
];

interface Props {
  /** RFC 3339; null: never. */
  readonly value: string | null;
  readonly onChange: (value: string | null) => void;
  readonly error?: string | null;
}

export function ExpiryField({ value, onChange, error = null }: Props) {
  const [chosen, setChosen] = useState(value === null ? "never" : "exact");
  const choose = (next: string | null) => {
    setChosen(next ?? "never");
    if (next === "never" || next === null) return onChange(null);
    const days = next === "exact" ? 30 : Number(next);
    if (next !== "exact" || value === null)
      onChange(new Date(Date.now() + days * DAY * 1000).toISOString());
  };
  return (
    <SimpleGrid cols={{ base: 1, xs: chosen === "exact" ? 2 : 1 }}>
      <Select
        label="Expires"
        description="The gateway then rejects it"
        data={choices}
        allowDeselect={false}
        value={chosen}
        onChange={choose}
        error={chosen === "exact" ? undefined : error}
      />
      {chosen === "exact" && (
        <TextInput
          type="datetime-local"
          label="Time"
          description="In the browser's time zone"
          error={error}
          value={value === null ? "" : toLocal(value)}
          onChange={({ currentTarget: { value: next } }) => {
            const at = new Date(next);
            if (!Number.isNaN(at.getTime())) onChange(at.toISOString());
          }}
        />
      )}
    </SimpleGrid>
  );
}

/** The format of datetime inputs: no zone, no seconds. */
function toLocal(text: string): string {
  const at = new Date(text);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
