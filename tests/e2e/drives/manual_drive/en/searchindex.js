Search.setIndex({"docnames":["install","calibrate","alarms"],"terms":{"gauge":[0,1],"staff":1}})
