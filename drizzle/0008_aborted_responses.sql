-- broken_off of the statistics is aborted_responses now. Stored JSON has no white space.
UPDATE traffic_rollups SET document = replace(document, '"broken_off":', '"aborted_responses":');
