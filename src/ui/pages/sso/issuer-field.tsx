// The input of the issuer, with hints for well-known providers; stores no provider.
import { Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { HelpText } from "../../parts/page-layout.tsx";
import { type FieldInputProps, placeholderOf, useTexts } from "../../parts/schema/field-frame.tsx";
import { providers } from "./providers.ts";

export function IssuerField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const [name, setName] = useState<string | null>(null);
  const provider = providers.find((one) => one.name === name);
  return (
    <Stack>
      <Select
        label="Provider"
        description="For hints only, not stored"
        placeholder="Other"
        data={providers.map((one) => one.name)}
        value={name}
        onChange={setName}
        clearable
      />
      {provider !== undefined && <HelpText>{provider.hint}</HelpText>}
      <TextInput
        {...texts}
        placeholder={provider?.issuer ?? placeholderOf(info)}
        value={typeof value === "string" ? value : ""}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </Stack>
  );
}
