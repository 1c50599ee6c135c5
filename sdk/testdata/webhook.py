# Verifies the messages of a file and prints the results.
import base64
import json
import os

from holdfast import HoldfastError, verify

with open(os.environ["MESSAGES"], encoding="utf-8") as file:
    messages = json.load(file)
for message in messages:
    try:
        print(f"{message['name']}:", verify(message["secrets"], message["headers"], base64.b64decode(message["body"]))["type"])
    except HoldfastError as error:
        print(f"{message['name']}:", error.code)
