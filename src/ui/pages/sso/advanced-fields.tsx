// What few need to change about single sign-on, folded away; knows no provider.
import { Accordion, Select, Stack, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import type { SsoFieldsProps } from "./client-fields.tsx";

export function AdvancedFields({ form }: SsoFieldsProps) {
  const hasError = ["scopes", "token_auth", "button_label"].some((name) => name in form.errors);
  return (
    <Accordion variant="contained" mb="md" {...(hasError ? { value: "more" } : {})}>
      <Accordion.Item value="more">
        <Accordion.Control>Advanced</Accordion.Control>
        <Accordion.Panel>
          <Stack>
            <TextInput
              label="Text of the button"
              description="On the page where people sign in"
              maw={420}
              {...form.getInputProps("button_label")}
            />
            <ListField
              label="Scopes"
              description="What is asked for; some providers want one more for groups"
              suggestions={["openid", "email", "profile", "groups"]}
              {...form.getInputProps("scopes")}
            />
            <Select
              label="How the secret is sent"
              data={[
                { value: "basic", label: "In a header (client_secret_basic), as most want it" },
                { value: "post", label: "In the body (client_secret_post)" },
              ]}
              allowDeselect={false}
              maw={420}
              {...form.getInputProps("token_auth")}
            />
          </Stack>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}
