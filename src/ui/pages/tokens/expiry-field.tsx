// An expiry: a preset, a day, or none; knows no token.
import { Group, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { type FieldInputProps, useTexts } from "../../parts/schema/field-frame.tsx";

const DAY = 86_400_000;
const choices = [
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In one year" },
  { value: "day", label: "Custom day" },
  { value: "never", label: "Never" },
];

/** The input of `expires_at`. */
export function ExpiryField({ info, value: given, onChange }: FieldInputProps) {
  const { label, description, error, disabled } = useTexts(info);
  const value = typeof given === "string" ? given : null;
  // The choice is not stored: `in 30 days` is stored as a time.
  const [choice, setChoice] = useState(value === null ? "never" : "day");
  const shown = value === null && choice !== "day" ? "never" : choice;
  const choose = (next: string | null) => {
    if (next === null) return;
    setChoice(next);
    if (next === "never") onChange(null);
    else onChange(inDays(next === "day" ? 30 : Number(next)));
  };
  return (
    <Group align="flex-start" gap="sm">
      <Select
        label={label}
        description={description}
        disabled={disabled}
        data={choices}
        allowDeselect={false}
        value={shown}
        onChange={choose}
        error={error}
        style={{ flex: "1 1 10rem" }}
      />
      {value !== null && (
        <TextInput
          label="Day"
          description="At its end, UTC"
          type="date"
          disabled={disabled}
          value={value.slice(0, 10)}
          onChange={(event) => {
            setChoice("day");
            const day = event.currentTarget.value;
            if (day !== "") onChange(`${day}T23:59:59Z`);
          }}
          style={{ flex: "1 1 10rem" }}
        />
      )}
    </Group>
  );
}

/** At the end of the day, so that two tokens of one day end together. */
const inDays = (days: number): string =>
  `${new Date(Date.now() + days * DAY).toISOString().slice(0, 10)}T23:59:59Z`;
