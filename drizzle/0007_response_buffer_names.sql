-- collect_bytes of services is response_buffer_bytes now, limits.collect_budget_bytes of the settings response_buffer_budget_bytes.
-- Stored JSON has no white space, and quotation marks inside of texts are escaped: "name": is always a member.
UPDATE services SET document = replace(document, '"collect_bytes":', '"response_buffer_bytes":');
UPDATE applications SET document = replace(document, '"collect_bytes":', '"response_buffer_bytes":');
UPDATE settings SET document = replace(document, '"collect_budget_bytes":', '"response_buffer_budget_bytes":');
-- The history holds plugins as well, whose configuration may have a text under any name: `":"` takes it out of the way.
UPDATE revisions SET change = replace(replace(replace(change,
	'"collect_bytes":"', '"collect_bytes" :"'), '"collect_bytes":', '"response_buffer_bytes":'), '"collect_bytes" :"', '"collect_bytes":"')
	WHERE instr(change, '"collect_bytes":') > 0;
UPDATE revisions SET change = replace(replace(replace(change,
	'"collect_budget_bytes":"', '"collect_budget_bytes" :"'), '"collect_budget_bytes":', '"response_buffer_budget_bytes":'), '"collect_budget_bytes" :"', '"collect_budget_bytes":"')
	WHERE instr(change, '"collect_budget_bytes":') > 0;
